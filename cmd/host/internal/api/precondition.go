package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// Precondition is what has to hold before a request changes anything; exported because huma fills only exported fields.
type Precondition struct {
	IfMatch string `header:"If-Match" doc:"tags, as ETag gave them, of which one must be that of what is to be changed; * is any"`
}

// tags returns the tags of which one must match; nil is any. Weak ones keep their mark, and match none.
func (p Precondition) tags() ([]string, error) {
	rest := strings.Trim(p.IfMatch, " \t")
	if rest == "" || rest == "*" {
		return nil, nil
	}
	var out []string
	for rest != "" {
		opaque, weak := strings.CutPrefix(rest, "W/")
		tag, after, closed := strings.Cut(strings.TrimPrefix(opaque, `"`), `"`)
		after = strings.TrimLeft(after, " \t")
		if !strings.HasPrefix(opaque, `"`) || !closed || after != "" && after[0] != ',' || strings.ContainsFunc(tag, notInTag) {
			return nil, problem(http.StatusBadRequest, wire.CodeInvalid,
				`If-Match is no list of tags; want * or what the header ETag gave, in its quotation marks`)
		}
		if weak {
			tag = "W/" + tag
		}
		out, rest = append(out, tag), strings.TrimLeft(after, ", \t")
	}
	return out, nil
}

// notInTag reports whether RFC 9110, section 8.8.3, has no place for r in a tag.
func notInTag(r rune) bool { return r <= ' ' || r == 0x7f }

// changedProblem says that a precondition doesn't hold, and which tag would.
func changedProblem(detail, tag string) *wire.Problem {
	p := problem(http.StatusPreconditionFailed, wire.CodeChanged, detail)
	p.CurrentTag = tag
	return p
}

// quoted returns a tag as a header has it.
func quoted(tag string) string { return `"` + tag + `"` }

// taggedBody is an answer with a JSON body, and the tag of what it shows.
type taggedBody[T any] struct {
	ETag string `header:"ETag" doc:"names what this shows: If-Match takes it"`
	Body T
}

// registerTagged registers an operation whose answer has a tag. One that changes something is to take a Precondition.
func registerTagged[I, O any](a *admin, op huma.Operation, d time.Duration, tag func(O) string, h func(context.Context, *I) (O, error)) {
	op.MaxBodyBytes = batchBodyBytes
	op.DefaultStatus = http.StatusOK
	huma.Register(a.api, op, func(ctx context.Context, in *I) (*taggedBody[O], error) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		out, err := h(ctx, in)
		if err != nil {
			return nil, a.refusal(err)
		}
		return &taggedBody[O]{quoted(tag(out)), out}, nil
	})
	if op.Method != http.MethodGet {
		describePrecondition(a.api.OpenAPI().Paths[op.Path], op.OperationID)
	}
}

// describePrecondition has the document of the interface say what an operation answers when its precondition doesn't hold.
func describePrecondition(path *huma.PathItem, id string) {
	for _, op := range []*huma.Operation{path.Post, path.Patch, path.Delete} {
		if op == nil || op.OperationID != id {
			continue
		}
		op.Responses["412"] = &huma.Response{
			Description: "If-Match names none of the tags that what is to be changed has; nothing was changed",
			Content:     op.Responses["default"].Content,
			Headers:     map[string]*huma.Param{"ETag": {Description: "the tag that it has", Schema: &huma.Schema{Type: huma.TypeString}}},
		}
	}
}
