// Package api serves the host's HTTP interfaces.
//
// The data interface (Data, on TCP) takes messages from producers:
//
//	POST /v1/topics/{topic}/messages   one message as the raw body, or a wire.Batch under its own content type;
//	                                   201, or 200 if all of it was published before under the same idempotency keys
//	GET  /livez, /readyz
//
// The admin interface (NewAdmin, on a Unix socket that only the host's own user opens) does what the commands do:
//
//	/admin/v1/…    described by itself at /admin/v1/openapi.json
//	/metrics, /livez, /readyz
//
// Both answer errors as problems of RFC 9457 (wire.Problem) and share Serve, which sets every bound of a connection.
package api

import "time"

// Bounds of a listener.
const (
	headerBytes       = 64 << 10
	readHeaderTimeout = 5 * time.Second
	readTimeout       = time.Minute
	writeTimeout      = 2 * time.Minute
	idleTimeout       = 2 * time.Minute
	requestTimeout    = 30 * time.Second // of the work that a request asks for
	deployTimeout     = 10 * time.Minute // of a deployment, which compiles modules

	// uploads bounds the modules that are taken at once, bearerUploads those of bearers, and tenantUploads those of the bearers
	// of one tenant, with what waits: so a slow body keeps neither another tenant nor the operator from uploading.
	uploads       = 4
	bearerUploads = uploads - 1
	tenantUploads = 1

	// tenantDeployments bounds those of a tenant's bearers that are made or wait: they are made one after the other.
	tenantDeployments = 1

	// DataConnections and AdminConnections bound the open connections of a listener; more wait in the kernel's queue.
	DataConnections  = 1024
	AdminConnections = 128

	// AdminStreams bounds the tails and replays that the admin interface sends at once: fewer than it has connections, so that
	// commands get through.
	AdminStreams = AdminConnections / 2

	// batchBodyBytes bounds the JSON of a batch, in which base64 takes 4/3 of the payloads.
	batchBodyBytes = 16 << 20

	// bodyBytes bounds the bodies that the data interface holds at once, adminBodyBytes those that an admin interface does, and
	// bodyWait how long a request waits for room. JSON counts for what it takes while it is decoded.
	bodyBytes      = 128 << 20
	adminBodyBytes = 64 << 20
	bodyWait       = 5 * time.Second
)
