/* AMX's tiles in plain memory, put before each source, so that loops written for them run on any processor with
 * AVX-512's bfloat16 (test_build.py). Products of a pair are rounded otherwise than AMX rounds them. */
#include <cpuid.h>
#include <immintrin.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static __thread unsigned char tiles[8][16][64];

static inline __attribute__((unused)) void emulated_load(int tile, const void *from, long stride) {
    for (int row = 0; row < 16; row++) memcpy(tiles[tile][row], (const char *)from + row * stride, 64);
}
static inline __attribute__((unused)) void emulated_store(int tile, void *to, long stride) {
    for (int row = 0; row < 16; row++) memcpy((char *)to + row * stride, tiles[tile][row], 64);
}
static inline __attribute__((unused, target("avx512f,avx512bf16"))) void emulated_product(int sums, int left,
                                                                                          int right) {
    for (int row = 0; row < 16; row++) {
        __m512 sum = _mm512_loadu_ps(tiles[sums][row]);
        for (int k = 0; k < 16; k++) {
            int32_t pair;
            memcpy(&pair, tiles[left][row] + 4 * k, sizeof pair);
            sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(pair),
                                   (__m512bh)_mm512_loadu_si512(tiles[right][k]));
        }
        _mm512_storeu_ps(tiles[sums][row], sum);
    }
}

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#undef _tile_loadconfig
#undef _tile_release
#define _tile_loadd(tile, from, stride) emulated_load(tile, from, stride)
#define _tile_stored(tile, to, stride) emulated_store(tile, to, stride)
#define _tile_zero(tile) memset(tiles[tile], 0, sizeof tiles[tile])
#define _tile_dpbf16ps(sums, left, right) emulated_product(sums, left, right)
#define _tile_loadconfig(config) ((void)(config))
#define _tile_release() ((void)0)
/* the processor and the system say yes */
#define __get_cpuid_count(leaf, subleaf, a, b, c, d) (*(a) = *(b) = *(c) = *(d) = ~0u, 1)
#define syscall(...) 0
