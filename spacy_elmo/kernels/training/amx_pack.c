/* Right operands in the order in which the tiles want them. */
#include "../common/amx.h"

#ifdef COMPILES_BF16
/* A (k, n) matrix, packed. Of its 64 columns, a group's four tiles begin `between` columns apart and the groups
 * `apart`: (16, 64) where the columns keep their order, (dim, 16) where a group is 16 units' gates. */
EXPORT FOR_AMX void amx_pack(int k, int n, int between, int apart, const bfloat16 *restrict matrix,
                         bfloat16 *restrict packed) {
    for (int group = 0; group < n / 64; group++)
        for (int row = 0; row < k; row += 32)
            for (int tile = 0; tile < 4; tile++)
                for (int pair = 0; pair < 16; pair++) {
                    const bfloat16 *even = matrix + (size_t)(row + 2 * pair) * n + group * apart + tile * between;
                    _mm512_storeu_si512(packed, pairs(even, even + n));
                    packed += 32;
                }
}

/* 16 rows of 32 values as a tile of a right operand; the rows' second 16 begin at `second`. */
ALWAYS_INLINE FOR_AMX void transpose(const bfloat16 *restrict lower, const bfloat16 *restrict second, size_t stride,
                      bfloat16 *restrict tile) {
    __m512i at = _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                    _mm512_set1_epi32((int)stride));
    for (int pair = 0; pair < 16; pair++) {
        const bfloat16 *column = pair < 8 ? lower + 2 * pair : second + 2 * (pair - 8);
        _mm512_storeu_si512(tile + 32 * pair, _mm512_i32gather_epi32(at, column, 2));
    }
}

/* The transpose (k, n) of a matrix (n, k), packed. */
EXPORT FOR_AMX void amx_pack_transposed(int k, int n, const bfloat16 *restrict matrix, bfloat16 *restrict packed) {
    for (int group = 0; group < n; group += 64)
        for (int column = 0; column < k; column += 32)
            for (int tile = 0; tile < 64; tile += 16) {
                const bfloat16 *from = matrix + (size_t)(group + tile) * k + column;
                transpose(from, from + 16, k, packed);
                packed += TILE;
            }
}

/* The transpose (4 dim, n) of a weight (n, 4 dim), each 64 units' 256 rows packed by themselves; the rows in the order
 * of the gates' layout. */
EXPORT FOR_AMX void amx_pack_gates_transposed(int dim, int n, const bfloat16 *restrict weight,
                                          bfloat16 *restrict packed) {
    for (int chunk = 0; chunk < dim; chunk += 64)
        for (int group = 0; group < n; group += 64)
            for (int k = 0; k < 8; k++)
                for (int tile = 0; tile < 64; tile += 16) {
                    const bfloat16 *from = weight + (size_t)(group + tile) * 4 * dim + chunk + k / 2 * 16;
                    from += (size_t)(k % 2) * 2 * dim;
                    transpose(from, from + dim, 4 * (size_t)dim, packed);
                    packed += TILE;
                }
}
#endif
