package wire

import "fmt"

// ProblemContentType is the media type of a Problem.
const ProblemContentType = "application/problem+json"

// Code names the kind of a problem, for programs.
type Code string

// Codes of problems.
const (
	CodeInvalid          Code = "invalid"
	CodeUnauthorized     Code = "unauthorized"
	CodeForbidden        Code = "forbidden"
	CodeForeign          Code = "foreign-request"
	CodeNotFound         Code = "not-found"
	CodeMethod           Code = "method-not-allowed"
	CodeTooLarge         Code = "too-large"
	CodeUnsupportedMedia Code = "unsupported-media-type"
	CodeRate             Code = "rate-exceeded"
	CodeDepth            Code = "depth-exceeded"
	CodeStorageFull      Code = "storage-full"
	CodeQuota            Code = "quota-exceeded"
	CodeBusy             Code = "busy"
	CodeUnavailable      Code = "unavailable"
	CodeConflict         Code = "conflict"
	CodeChanged          Code = "changed"
	CodeManifest         Code = "manifest-invalid"
	CodeTimeout          Code = "timeout"
	CodeInternal         Code = "internal"
)

// Problem is an error in the format of RFC 9457, of type about:blank, with a code for programs.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   Code   `json:"code"`

	// RetryAfterSeconds is at least 1 where trying again later helps, else 0. It travels as the Retry-After header as well.
	RetryAfterSeconds int `json:"retry_after_seconds,omitempty"`
	// CurrentTag is the tag that If-Match would have had to name. It travels as the ETag header as well.
	CurrentTag string `json:"current_tag,omitempty"`
	// Errors lists the faults of a request that was refused by its schema.
	Errors []ProblemError `json:"errors,omitempty"`
}

// ProblemError is one fault of a request.
type ProblemError struct {
	Message  string `json:"message"`
	Location string `json:"location,omitempty"`
}

// Error implements error.
func (p *Problem) Error() string {
	s := p.Detail
	if s == "" {
		s = p.Title
	}
	for _, e := range p.Errors {
		s += fmt.Sprintf("; %s: %s", e.Location, e.Message)
	}
	return s
}

// GetStatus returns the HTTP status; huma reads it.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType returns the media type of a problem for the negotiated one; huma reads it.
func (p *Problem) ContentType(string) string { return ProblemContentType }
