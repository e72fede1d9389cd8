// Package scaffold writes a new consumer: a folder with a manifest, a handler of about ten lines, the SDK of its language, and
// a README with the commands that come next. All of it is built into the program.
//
//	templates/<language>/…   the files, each with the ending .tmpl, which is cut off; dot- at the beginning is a dot
//	gosdk.txt                the SDK for Go in one text: "-- name --", and the file's lines
package scaffold
