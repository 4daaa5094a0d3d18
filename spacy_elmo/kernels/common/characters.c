/* Convolutions over characters as additions of table rows: table[k][c] is character c's embedding times the k-th
 * slice of the filters, so that a window's sums are `width` row additions. Exact but for the order of additions. */
#include "common.h"

#define TOGETHER 64 /* filters at once: sums and maxima stay in registers */

ALWAYS_INLINE void convolve_(int words, int stride, int width, int n_ids, int filters, int out_stride,
                             const int16_t *restrict ids, const int32_t *restrict lengths, const float *restrict table,
                             float *restrict out, uint8_t *restrict where, const int wants_where) {
    for (int start = 0; start < filters; start += TOGETHER) { /* their part of the table stays in the cache */
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
                    int more = (sum[q] > best[q]) | (sum[q] != sum[q]); /* a NaN comes through, as with torch */
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

/* Where the width is known the sums stay in registers from one row of the table to the next. */
ALWAYS_INLINE void convolve_width_(int words, int stride, int width, int n_ids, int filters, int out_stride,
                                   const int16_t *restrict ids, const int32_t *restrict lengths,
                                   const float *restrict table, float *restrict out, uint8_t *restrict where,
                                   const int wants_where) {
    switch (width) {
#define CASE(N) \
    case N: convolve_(words, stride, N, n_ids, filters, out_stride, ids, lengths, table, out, where, wants_where); break;
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7)
#undef CASE
        default: convolve_(words, stride, width, n_ids, filters, out_stride, ids, lengths, table, out, where, wants_where);
    }
}

/* ids (words, stride), the first lengths[word] of which count (at least width); table (width, n_ids, filters); out
 * (words, out_stride): maxima over the windows; where (words, out_stride): the first window that has it. */
EXPORT LOOP void convolve(int words, int stride, int width, int n_ids, int filters, int out_stride,
                          const int16_t *restrict ids, const int32_t *restrict lengths, const float *restrict table,
                          float *restrict out, uint8_t *restrict where) {
    convolve_width_(words, stride, width, n_ids, filters, out_stride, ids, lengths, table, out, where, 1);
}

/* The same without `where`, which only a backward pass needs. */
EXPORT LOOP void convolve_maxima(int words, int stride, int width, int n_ids, int filters, int out_stride,
                                 const int16_t *restrict ids, const int32_t *restrict lengths,
                                 const float *restrict table, float *restrict out) {
    convolve_width_(words, stride, width, n_ids, filters, out_stride, ids, lengths, table, out, NULL, 0);
}

/* d_table (width, n_ids, filters) is added to. */
EXPORT void convolve_backward(int words, int stride, int width, int n_ids, int filters, int out_stride,
                              const int16_t *restrict ids, const float *restrict d_out,
                              const uint8_t *restrict where, float *restrict d_table) {
    for (int word = 0; word < words; word++) {
        const int16_t *restrict x = ids + (size_t)word * stride;
        const float *restrict dy = d_out + (size_t)word * out_stride;
        const uint8_t *restrict w = where + (size_t)word * out_stride;
        for (int q = 0; q < filters; q++) {
            if (dy[q] == 0.0f) continue; /* relu stops most */
            for (int k = 0; k < width; k++) d_table[((size_t)k * n_ids + x[w[q] + k]) * filters + q] += dy[q];
        }
    }
}
