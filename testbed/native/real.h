/* For LD_PRELOAD shims: the function that one of theirs stands before (dlsym(3), RTLD_NEXT). */
#pragma once
#include <dlfcn.h>
#include <stdatomic.h>

/* The C library's own function behind the one of that name here, looked up once.  Two threads may
 * both look it up; they store the same address. */
#define REAL(name)                                                               \
	({                                                                       \
		static _Atomic(void *) found;                                    \
		void *address = atomic_load_explicit(&found, memory_order_relaxed); \
		if (!address) {                                                  \
			address = dlsym(RTLD_NEXT, #name);                       \
			atomic_store_explicit(&found, address, memory_order_relaxed); \
		}                                                                \
		(__typeof__(&name))address;                                      \
	})
