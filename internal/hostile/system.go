package hostile

import "encoding/binary"

// sleep is n subscriptions to a clock, each due in a year.
func sleep(n int) string {
	b := make([]byte, 48)
	b[16] = 1 // the monotonic clock
	binary.LittleEndian.PutUint64(b[24:], 365*24*3600*1e9)
	return times(n, string(b))
}

// wasiFuncs are the functions of WASI preview 1 but for proc_exit, and the letters of their parameters.
func wasiFuncs() [][2]string {
	return [][2]string{
		{"args_get", "ii"},
		{"args_sizes_get", "ii"},
		{"environ_get", "ii"},
		{"environ_sizes_get", "ii"},
		{"clock_res_get", "ii"},
		{"clock_time_get", "ili"},
		{"fd_advise", "illi"},
		{"fd_allocate", "ill"},
		{"fd_close", "i"},
		{"fd_datasync", "i"},
		{"fd_fdstat_get", "ii"},
		{"fd_fdstat_set_flags", "ii"},
		{"fd_fdstat_set_rights", "ill"},
		{"fd_filestat_get", "ii"},
		{"fd_filestat_set_size", "il"},
		{"fd_filestat_set_times", "illi"},
		{"fd_pread", "iiili"},
		{"fd_prestat_get", "ii"},
		{"fd_prestat_dir_name", "iii"},
		{"fd_pwrite", "iiili"},
		{"fd_read", "iiii"},
		{"fd_readdir", "iiili"},
		{"fd_renumber", "ii"},
		{"fd_seek", "ilii"},
		{"fd_sync", "i"},
		{"fd_tell", "ii"},
		{"fd_write", "iiii"},
		{"path_create_directory", "iii"},
		{"path_filestat_get", "iiiii"},
		{"path_filestat_set_times", "iiiilli"},
		{"path_link", "iiiiiii"},
		{"path_open", "iiiiillii"},
		{"path_readlink", "iiiiii"},
		{"path_remove_directory", "iii"},
		{"path_rename", "iiiiii"},
		{"path_symlink", "iiiii"},
		{"path_unlink_file", "iii"},
		{"poll_oneoff", "iiii"},
		{"proc_raise", "i"},
		{"sched_yield", ""},
		{"random_get", "ii"},
		{"sock_accept", "iii"},
		{"sock_recv", "iiiiii"},
		{"sock_send", "iiiii"},
		{"sock_shutdown", "ii"},
	}
}

// wasi misuses WASI preview 1: floods of each function with arguments of zero and with absurd ones, and sleep.
func wasi() []Module {
	var all []Module
	for _, f := range wasiFuncs() {
		imports := []imported{{fromWASI, f[0], f[1], "i"}}
		absurd := ""
		for _, l := range f[1] {
			if l == 'l' {
				absurd += "\x42\x7f"
			} else {
				absurd += konst(-1)
			}
		}
		all = append(
			all,
			flood(f[0]+" with zeros", guest{imports: imports, handler: forever(zeros(f[1]) + call(0) + drop)}),
			flood(f[0]+" with absurd arguments", guest{imports: imports, handler: forever(absurd + call(0) + drop)}),
		)
	}
	exit := []imported{{fromWASI, "proc_exit", "i", ""}}
	poll := []imported{{fromWASI, "poll_oneoff", "iiii", "i"}}
	polling := func(data string, n int32) guest {
		return guest{
			imports: poll, data: data, memory: "\x00\x10",
			handler: forever(konst(dataAt) + konst(512<<10) + konst(n) + konst(800<<10) + call(0) + drop),
		}
	}
	random := func(ptr, n int32) guest {
		return guest{imports: []imported{{fromWASI, "random_get", "ii", "i"}}, handler: growTo(900) + forever(konst(ptr)+konst(n)+call(0)+drop)}
	}
	return append(
		all,
		ends("an exit with 0", "exit 0", guest{imports: exit, handler: konst(0) + call(0) + konst(0)}),
		ends("an exit with 4294967295", "exit 4294967295", guest{imports: exit, handler: konst(-1) + call(0) + konst(0)}),
		waits("sleeping for a year", polling(sleep(1), 1)),
		waits("sleeping four thousand years at once", polling(sleep(4_000), 4_000)),
		waits("polling four thousand ready streams", polling(times(4_000, times(8, "\x00")+"\x01"+times(39, "\x00")), 4_000)),
		flood("polling a billion subscriptions", polling("", 1<<30)),
		flood("polling a stream that is ready", polling(times(8, "\x00")+"\x01"+times(39, "\x00"), 1)),
		flood("four gigabytes of randomness", random(0, -1)),
		waits("all memory of randomness", random(0, 56<<20)),
	)
}
