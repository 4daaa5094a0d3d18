/* Gradients of weights: the transpose of the inputs of a layer times the gradients of its outputs, summed over all rows
 * of all steps. */
#include "../common/amx.h"
#include "../common/calls.h"

#ifdef COMPILES_BF16
/* Blocks of 32 rows that are multiplied at once. Their right operand is 32 KB, which fits the first-level cache. */
#define DEEP 8

/* Packs the transpose of a matrix as tiles of a left operand.
 * matrix (rows, n)
 * packed ([rows / 256][n / 16][256 / 32][16][32]): out */
EXPORT FOR_AMX void amx_pack_left(int64_t rows, int n, const bfloat16 *restrict matrix, bfloat16 *restrict packed) {
    _Alignas(64) uint32_t tile[256];
    const __m512i at = _mm512_slli_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), 4);
    for (int64_t begin = 0; begin < rows; begin += 32 * DEEP)
        for (int column = 0; column < n; column += 16)
            for (int64_t row = begin; row < rows && row < begin + 32 * DEEP; row += 32) {
                for (int pair = 0; pair < 16; pair++) {
                    const bfloat16 *even = matrix + (row + 2 * pair) * n + column;
                    _mm512_store_si512(tile + 16 * pair, pairs(even, even + n));
                }
                for (int k = 0; k < 16; k++, packed += 32)
                    _mm512_storeu_si512(packed, _mm512_i32gather_epi32(at, tile + k, 4));
            }
}

/* Packs 32 rows of 64 columns as a group of a right operand.
 * from: the first row, in a blocked array of `rows` rows
 * packed: out, the group
 * totals (4, 16): the sum of each column over the rows is added to it */
ALWAYS_INLINE FOR_AMX void pack_right(const bfloat16 *restrict from, size_t rows, bfloat16 *restrict packed,
                                      __m512 totals[4]) {
    const __m512bh ones = (__m512bh)_mm512_set1_epi16(0x3f80);
    __m512 sums[4] = {totals[0], totals[1], totals[2], totals[3]};
    for (int pair = 0; pair < 16; pair++, from += 64)
        for (int tile = 0; tile < 4; tile++) {
            const bfloat16 *even = from + tile / 2 * rows * 32 + tile % 2 * 16;
            __m512i both = pairs(even, even + 32);
            _mm512_store_si512(packed + tile * TILE + pair * 32, both);
            sums[tile] = _mm512_dpbf16_ps(sums[tile], ones, (__m512bh)both);
        }
    for (int tile = 0; tile < 4; tile++) totals[tile] = sums[tile];
}

/* gradient = the transpose of left times right. */
EXPORT FOR_AMX void amx_weight_gradient(const AmxGradientCall *call) {
    _Alignas(64) bfloat16 packed[DEEP * GROUP];
    const int rows = call->rows, m = call->m, n = call->n;
    const bfloat16 *restrict left = call->left, *restrict right = call->right;
    float *restrict gradient = call->gradient, *restrict totals = call->totals, *restrict work = call->work;
    size_t depth = (size_t)call->steps * rows, groups = n / 64;
    tiles_begin();
    for (size_t begin = 0; begin < groups; begin += GRADIENT_GROUPS) {
        size_t end = begin + GRADIENT_GROUPS < groups ? begin + GRADIENT_GROUPS : groups;
        __m512 sums[GRADIENT_GROUPS][4];
        memset(sums, 0, sizeof sums);
        for (size_t row = 0; row < depth; row += 32 * DEEP) {
            size_t deep = depth - row < 32 * DEEP ? (depth - row) / 32 : DEEP;
            for (size_t group = begin; group < end; group++) {
                for (size_t k = 0; k < deep; k++) {
                    size_t at = row + 32 * k;
                    const bfloat16 *from = right + at / rows * rows * n + group * 64 * rows + at % rows * 32;
                    pack_right(from, rows, packed + k * GROUP, sums[group - begin]);
                }
                BARRIER();
                float *total = work + (group - begin) * 64 * m;
                for (int column = 0; column < m; column += 16, total += 1024) {
                    const bfloat16 *tiles = left + row * m + column * deep * 32;
                    if (row) tiles_load(total);
                    else tiles_zero();
                    for (size_t k = 0; k < deep; k++) tiles_multiply(tiles + k * TILE, 64, packed + k * GROUP);
                    tiles_store(total);
                }
            }
        }
        for (size_t group = begin; group < end; group++)
            for (int tile = 0; tile < 4; tile++) {
                size_t column = group * call->group_stride + tile * call->tile_stride;
                const float *from = work + (group - begin) * 64 * m + tile * 256;
                _mm512_storeu_ps(totals + column, sums[group - begin][tile]);
                for (int row = 0; row < m; row++)
                    _mm512_storeu_ps(gradient + (size_t)row * n + column,
                                     _mm512_loadu_ps(from + row / 16 * 1024 + row % 16 * 16));
            }
    }
    tiles_end();
}
#endif
