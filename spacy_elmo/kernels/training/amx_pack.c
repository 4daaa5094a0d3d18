/* Packs right operands: copies them into the layout from which tiles are loaded (see layouts.h). */
#include "../common/amx.h"

#ifdef COMPILES_BF16
/* Packs a matrix (k, n).
 * tile_stride: columns of the matrix from one tile to the next in a group of four. It is 16 if the columns stay in
 * their order, and dim if a group is the four gates of 16 units.
 * group_stride: columns of the matrix from one group to the next: 64 or 16 in these cases */
EXPORT FOR_AMX void amx_pack(int k, int n, int tile_stride, int group_stride, const bfloat16 *restrict matrix,
                         bfloat16 *restrict packed) {
    for (int group = 0; group < n / 64; group++)
        for (int row = 0; row < k; row += 32)
            for (int tile = 0; tile < 4; tile++)
                for (int pair = 0; pair < 16; pair++) {
                    const bfloat16 *from = matrix + group * group_stride + tile * tile_stride;
                    const bfloat16 *even = from + (size_t)(row + 2 * pair) * n;
                    _mm512_storeu_si512(packed, pairs(even, even + n));
                    packed += 32;
                }
}

/* Transposes 16 rows of 32 values into a tile of a right operand.
 * lower: the first 16 values of the first row
 * second: the last 16 values of the first row
 * stride: distance in values from one row to the next */
ALWAYS_INLINE FOR_AMX void transpose(const bfloat16 *restrict lower, const bfloat16 *restrict second, size_t stride,
                      bfloat16 *restrict tile) {
    __m512i at = _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                    _mm512_set1_epi32((int)stride));
    for (int pair = 0; pair < 16; pair++) {
        const bfloat16 *column = pair < 8 ? lower + 2 * pair : second + 2 * (pair - 8);
        _mm512_storeu_si512(tile + 32 * pair, _mm512_i32gather_epi32(at, column, 2));
    }
}

/* Packs the transpose (k, n) of a matrix (n, k). */
EXPORT FOR_AMX void amx_pack_transposed(int k, int n, const bfloat16 *restrict matrix, bfloat16 *restrict packed) {
    for (int group = 0; group < n; group += 64)
        for (int column = 0; column < k; column += 32)
            for (int tile = 0; tile < 64; tile += 16) {
                const bfloat16 *from = matrix + (size_t)(group + tile) * k + column;
                transpose(from, from + 16, k, packed);
                packed += TILE;
            }
}

/* Packs the transpose (4 dim, n) of a weight (n, 4 dim). The 256 rows of each 64 units are packed as a matrix of their
 * own. The rows are in the order of the columns of the array `gates` (see layouts.h). */
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
