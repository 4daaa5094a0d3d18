/* What the library says of itself: the sources that it was built from, and which kinds of loops this machine can run. It
 * can if the compiler had the instructions, and if the processor and the operating system support them. */
#include "common.h"

EXPORT const char *fingerprint(void) { return FINGERPRINT; }

EXPORT int has_neon(void) {
#ifdef COMPILES_NEON
    return 1;
#else
    return 0;
#endif
}

#ifdef COMPILES_X86
EXPORT int has_avx2(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
EXPORT int has_avx512(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
EXPORT int has_avx2(void) { return 0; }
EXPORT int has_avx512(void) { return 0; }
#endif

#ifdef COMPILES_BF16
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARCH_REQ_XCOMP_PERM 0x1023 /* from Linux 5.16 on: a process must ask for permission to use tiles */
#define XFEATURE_XTILEDATA 18

EXPORT int has_avx512_bf16(void) { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }

EXPORT int has_amx(void) {
    static int answer = -1; /* remembered: asking is slow in a virtual machine; all threads get the same answer */
    unsigned a, b, c, d;
    const unsigned needed = 1u << 22 | 1u << 24; /* AMX-BF16, AMX-TILE */
    if (answer < 0)
        answer = has_avx512_bf16() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & needed) == needed &&
                 syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
    return answer;
}
#else
EXPORT int has_avx512_bf16(void) { return 0; }
EXPORT int has_amx(void) { return 0; }
#endif
