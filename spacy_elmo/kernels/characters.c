/* Convolutions over characters, computed as additions of table rows. table[k][c] is the embedding of character c times
 * the filters' weights at position k of a window. So the sums of a window are the sum of `width` rows of the table.
 * The result is exact, except that the additions have another order. */
#include "common.h"

#define TOGETHER 64 /* filters that are computed at once, so that their sums and maxima stay in registers */

ALWAYS_INLINE void convolve_(int words, int stride, int width, int n_ids, int filters, int out_stride,
                             const int16_t *restrict ids, const int32_t *restrict lengths, const float *restrict table,
                             float *restrict out, uint8_t *restrict where, const int wants_where) {
    /* Filters in the outer loop: the part of the table that TOGETHER filters need stays in the cache. */
    for (int start = 0; start < filters; start += TOGETHER) {
        int n = filters - start < TOGETHER ? filters - start : TOGETHER;
        for (int word = 0; word < words; word++) {
            const int16_t *restrict x = ids + (size_t)word * stride;
            int windows = lengths[word] - width + 1;
            float best[TOGETHER], sum[TOGETHER];
            int32_t at[TOGETHER];
            for (int q = 0; q < TOGETHER; q++) best[q] = -INFINITY, at[q] = 0;
            for (int p = 0; p < windows; p++) {
                const float *row = table + (size_t)x[p] * filters + start;
                if (n == TOGETHER) {
                    for (int q = 0; q < TOGETHER; q++) sum[q] = row[q];
#pragma GCC unroll 8
                    for (int k = 1; k < width; k++) {
                        row = table + ((size_t)k * n_ids + x[p + k]) * filters + start;
                        for (int q = 0; q < TOGETHER; q++) sum[q] += row[q];
                    }
                } else {
                    for (int q = 0; q < n; q++) sum[q] = row[q];
                    for (int q = n; q < TOGETHER; q++) sum[q] = 0.0f;
                    for (int k = 1; k < width; k++) {
                        row = table + ((size_t)k * n_ids + x[p + k]) * filters + start;
                        for (int q = 0; q < n; q++) sum[q] += row[q];
                    }
                }
                for (int q = 0; q < TOGETHER; q++) {
                    int more = (sum[q] > best[q]) | (sum[q] != sum[q]); /* a NaN becomes the maximum, as in torch */
                    best[q] = more ? sum[q] : best[q];
                    if (wants_where) at[q] = more ? p : at[q];
                }
            }
            float *restrict y = out + (size_t)word * out_stride + start;
            for (int q = 0; q < n; q++) y[q] = best[q];
            for (int q = 0; wants_where && q < n; q++) where[(size_t)word * out_stride + start + q] = (uint8_t)at[q];
        }
    }
}

/* Calls convolve_ with a width that the compiler knows, if it is small: the sums then stay in registers from one row of
 * the table to the next. */
ALWAYS_INLINE void convolve_width_(int words, int stride, int width, int n_ids, int filters, int out_stride,
                                   const int16_t *restrict ids, const int32_t *restrict lengths,
                                   const float *restrict table, float *restrict out, uint8_t *restrict where,
                                   const int wants_where) {
    switch (width) {
#define CASE(N) \
    case N: \
        convolve_(words, stride, N, n_ids, filters, out_stride, ids, lengths, table, out, where, wants_where); \
        break;
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7)
#undef CASE
        default:
            convolve_(words, stride, width, n_ids, filters, out_stride, ids, lengths, table, out, where, wants_where);
    }
}

/* The maximum of each filter over the windows of each word.
 * ids (words, stride): characters
 * lengths (words): how many characters of each row count, at least `width`
 * table (width, n_ids, filters): as described above
 * out (words, out_stride): out, the maxima
 * where (words, out_stride): out, the first window that has the maximum */
EXPORT LOOP void convolve(int words, int stride, int width, int n_ids, int filters, int out_stride,
                          const int16_t *restrict ids, const int32_t *restrict lengths, const float *restrict table,
                          float *restrict out, uint8_t *restrict where) {
    convolve_width_(words, stride, width, n_ids, filters, out_stride, ids, lengths, table, out, where, 1);
}

/* The same without `where`, which only the backward pass needs. */
EXPORT LOOP void convolve_maxima(int words, int stride, int width, int n_ids, int filters, int out_stride,
                                 const int16_t *restrict ids, const int32_t *restrict lengths,
                                 const float *restrict table, float *restrict out) {
    convolve_width_(words, stride, width, n_ids, filters, out_stride, ids, lengths, table, out, NULL, 0);
}

/* The backward pass of convolve.
 * d_out (words, out_stride): gradients of the maxima
 * d_table (width, n_ids, filters): the gradients of the table are added to it */
EXPORT void convolve_backward(int words, int stride, int width, int n_ids, int filters, int out_stride,
                              const int16_t *restrict ids, const float *restrict d_out,
                              const uint8_t *restrict where, float *restrict d_table) {
    for (int word = 0; word < words; word++) {
        const int16_t *restrict x = ids + (size_t)word * stride;
        const float *restrict dy = d_out + (size_t)word * out_stride;
        const uint8_t *restrict w = where + (size_t)word * out_stride;
        for (int q = 0; q < filters; q++) {
            if (dy[q] == 0.0f) continue; /* most gradients are 0, because relu stops them */
            for (int k = 0; k < width; k++) d_table[((size_t)k * n_ids + x[w[q] + k]) * filters + q] += dy[q];
        }
    }
}
