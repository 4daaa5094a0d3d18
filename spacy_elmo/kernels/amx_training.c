/* One direction of one LSTM layer over a window of steps, for training, in bfloat16 on AMX: packing of the weights, the
 * forward pass, the backward pass, and the gradients of the weights. */
#include "amx.h"

#ifdef COMPILES_BF16
/* Packing: copies right operands into the layout from which tiles are loaded. */

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
 * own. The rows are in the order of the columns of the array `gates` (see calls.h). */
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

/* The forward pass: the matrix multiplications, the cell and the projection. */

/* 16 rows of 16 units.
 * sums: four tiles, one for each gate
 * valid: how many of the rows are not padding
 * The other addresses are those of the first row and the first unit, in the arrays of the call. */
typedef struct {
    const float *sums, *bias, *cell_in, *keep;
    float *cell_out;
    bfloat16 *gates, *outs;
    size_t dim, rows, valid;
    float bound;
} Units;

/* Computes the cells of one row of 16 units. The gates are written to memory without the caches, because nothing reads
 * them before the backward pass. */
ALWAYS_INLINE FOR_AMX void cell_row(const Units *u, size_t row) {
    __m256i *out = (__m256i *)(u->outs + row * 32);
    if (row >= u->valid) {
        _mm256_storeu_si256(out, _mm256_setzero_si256());
        return;
    }
    __m512 z[GATES], c = _mm512_loadu_ps(u->cell_in + row * 16);
    UNROLLED for (int gate = 0; gate < GATES; gate++)
        z[gate] = _mm512_add_ps(_mm512_load_ps(u->sums + row * 16 + 256 * gate),
                                _mm512_loadu_ps(u->bias + gate * u->dim));
    if (u->keep) c = _mm512_mul_ps(c, _mm512_set1_ps(u->keep[row]));
    c = cell16(z, c, u->bound);
    _mm512_storeu_ps(u->cell_out + row * 16, c);
    _mm512_stream_si512((void *)(u->gates + row * 32), narrow_two(z[GATE_I], z[GATE_J]));
    _mm512_stream_si512((void *)(u->gates + (u->rows + row) * 32), narrow_two(z[GATE_F], z[GATE_O]));
    _mm256_storeu_si256(out, output16(z, c));
}

/* Clips the sums of 16 rows and 64 columns and stores them as bfloat16.
 * sums ([4][16][16]): four tiles
 * out (rows, n): out, from its first row and column on */
ALWAYS_INLINE FOR_AMX void store_clipped(const float *sums, bfloat16 *out, size_t n, float bound) {
    for (int row = 0; row < 16; row++)
        for (int tile = 0; tile < 4; tile++) {
            __m512 x = clamp16(_mm512_load_ps(sums + tile * 256 + row * 16), bound);
            _mm256_storeu_si256((__m256i *)(out + row * n + tile * 16), narrow(x));
        }
}

EXPORT FOR_AMX void amx_forward(const AmxForwardCall *call) {
    _Alignas(64) float sums[2][1024];
    const int steps = call->steps, batch = call->batch, dim = call->dim, width = call->width;
    const size_t rows = PADDED(batch), n_in = call->n_in, both = n_in + width;
    const bfloat16 *restrict packed = call->packed, *restrict packed_w_p = call->packed_w_p;
    const float *restrict bias = call->bias, *restrict keep = call->keep;
    bfloat16 *restrict inputs = call->inputs, *restrict hidden = call->hidden, *restrict gates = call->gates;
    bfloat16 *restrict outs = call->outs;
    float *restrict cells = call->cells;
    tiles_begin();
    for (int t = 0; t < steps; t++) {
        const float *keep_step = keep ? keep + (size_t)t * batch : NULL;
        for (int row = 0; row < batch; row++)
            for (int k = 0; k < width; k += 16) {
                __m512 h = widen(_mm256_loadu_si256((const __m256i *)(hidden + row * (size_t)width + k)));
                if (keep_step) h = _mm512_mul_ps(h, _mm512_set1_ps(keep_step[row]));
                _mm256_storeu_si256((__m256i *)(inputs + row * both + n_in + k), narrow(h));
            }
        float *cell_out = cells + rows * dim;
        BARRIER();
        Units before = {0}; /* its cells are computed between the multiplications for the next rows */
        for (size_t unit = 0; unit < (size_t)dim; unit += 16) {
            const bfloat16 *right = packed + unit * 4 * both;
            for (size_t row = 0; row < rows; row += 16) {
                float *of_tile = sums[row / 16 % 2];
                Units now = {of_tile, bias + unit, cells + unit * rows + row * 16, keep_step ? keep_step + row : NULL,
                             cell_out + unit * rows + row * 16, gates + unit * 4 * rows + row * 32,
                             outs + unit / 32 * 32 * rows + row * 32 + unit % 32, dim, rows,
                             row < (size_t)batch ? batch - row : 0, call->cell_bound};
                size_t done = 0;
                tiles_zero();
                for (size_t k = 0; k < both; k += 32) {
                    tiles_multiply(inputs + row * both + k, 2 * both, right + k * 64);
                    for (; before.sums && done * both < 16 * (k + 32); done++) cell_row(&before, done);
                }
                tiles_store(of_tile);
                before = now;
            }
        }
        for (size_t row = 0; row < 16; row++) cell_row(&before, row);
        BARRIER();
        hidden += rows * width;
        for (int group = 0; group < width; group += 64)
            for (size_t row = 0; row < rows; row += 16) {
                tiles_zero();
                for (int k = 0; k < dim; k += 32)
                    tiles_multiply(outs + k * rows + row * 32, 64, packed_w_p + ((size_t)group * dim + k * 64));
                tiles_store(sums[0]);
                store_clipped(sums[0], hidden + row * width + group, width, call->proj_bound);
            }
        cells = cell_out, inputs += rows * both, gates += rows * 4 * dim, outs += rows * dim;
    }
    _mm_sfence();
    tiles_end();
}

/* The backward pass. */

/* The cells of 64 units. The addresses are those of the first row and the first unit, in the arrays of the call.
 * d_cells (batch, dim): may be NULL, as may keep
 * d_out ([rows / 16][4][16][16]): the gradients of the outputs of the cells, before the projection */
typedef struct {
    const float *cell_in, *cell_out, *d_cells, *keep, *d_out;
    float *d_cell;
    bfloat16 *gates;
    size_t dim, rows, batch;
    float bound;
} Chunk;

/* Computes the backward pass of the cell for one row of 16 units. It replaces the activations in `gates` by the
 * gradients of the sums. */
ALWAYS_INLINE FOR_AMX void cell_row_back(const Chunk *u, size_t row, size_t unit) {
    bfloat16 *first_two = u->gates + unit * 4 * u->rows + row * 32, *last_two = first_two + u->rows * 32;
    if (row >= u->batch) {
        _mm512_storeu_si512(first_two, _mm512_setzero_si512());
        _mm512_storeu_si512(last_two, _mm512_setzero_si512());
        return;
    }
    const __m512 one = _mm512_set1_ps(1.0f);
    size_t at = unit * u->rows + row * 16;
    __m512i ij = _mm512_loadu_si512(first_two), fo = _mm512_loadu_si512(last_two);
    __m512 i = widen_first(ij), j = widen_second(ij), f = widen_first(fo), o = widen_second(fo);
    const float *d_out = u->d_out + row / 16 * 1024 + unit * 16 + row % 16 * 16;
    __m512 y = _mm512_loadu_ps(d_out), c = _mm512_loadu_ps(u->cell_out + at), t = tanh16(c);
    __m512 d_c = _mm512_loadu_ps(u->d_cell + at), before = _mm512_loadu_ps(u->cell_in + at);
    if (u->d_cells) d_c = _mm512_add_ps(d_c, _mm512_loadu_ps(u->d_cells + row * u->dim + unit));
    d_c = _mm512_fmadd_ps(_mm512_mul_ps(y, o), _mm512_fnmadd_ps(t, t, one), d_c);
    d_c = _mm512_maskz_mov_ps(within16(c, u->bound), d_c);
    __m512 d_o = _mm512_mul_ps(_mm512_mul_ps(y, t), _mm512_fnmadd_ps(o, o, o));
    __m512 through = _mm512_mul_ps(d_c, f), d_j = _mm512_mul_ps(_mm512_mul_ps(d_c, i), _mm512_fnmadd_ps(j, j, one));
    __m512 d_i = _mm512_mul_ps(_mm512_mul_ps(d_c, j), _mm512_fnmadd_ps(i, i, i));
    if (u->keep) {
        __m512 keep = _mm512_set1_ps(u->keep[row]);
        before = _mm512_mul_ps(before, keep), through = _mm512_mul_ps(through, keep);
    }
    __m512 d_f = _mm512_mul_ps(_mm512_mul_ps(d_c, before), _mm512_fnmadd_ps(f, f, f));
    _mm512_storeu_ps(u->d_cell + at, through);
    _mm512_storeu_si512(first_two, narrow_two(d_i, d_j));
    _mm512_storeu_si512(last_two, narrow_two(d_f, d_o));
}

/* Computes the gradients of the projected outputs. A gradient is 0 if its output was clipped.
 * d_h (batch, width): gradients of this state that come from the next step
 * d_hidden (batch, width): gradients of this state from outside the loop, or NULL
 * hidden (batch, width): the clipped outputs
 * d_proj (rows, width): out; zeros in the padding */
ALWAYS_INLINE FOR_AMX void stop_clipped(size_t batch, size_t rows, size_t width, const float *d_h,
                                        const float *d_hidden, const bfloat16 *hidden, float bound, bfloat16 *d_proj) {
    for (size_t k = 0; k < batch * width; k += 16) {
        __m512 d = _mm512_loadu_ps(d_h + k), h = widen(_mm256_loadu_si256((const __m256i *)(hidden + k)));
        if (d_hidden) d = _mm512_add_ps(d, _mm512_loadu_ps(d_hidden + k));
        _mm256_storeu_si256((__m256i *)(d_proj + k), narrow(_mm512_maskz_mov_ps(within16(h, bound), d)));
    }
    memset(d_proj + batch * width, 0, (rows - batch) * width * sizeof *d_proj);
}

/* Splits the gradients of input and state.
 * sums ([(n_in + width) / 64][rows / 16][4][16][16]): the gradients of both
 * keep (batch): factor of the state before this step, or NULL
 * d_x (batch, n_in): out, the gradients of the input
 * d_h (batch, width): out, the gradients of the previous state, multiplied by keep */
ALWAYS_INLINE FOR_AMX void split(size_t batch, size_t rows, size_t n_in, size_t width, const float *sums,
                                 const float *keep, float *d_x, float *d_h) {
    for (size_t column = 0; column < n_in + width; column += 16) {
        const float *from = sums + column / 64 * 64 * rows + column % 64 / 16 * 256;
        for (size_t row = 0; row < batch; row++) {
            __m512 d = _mm512_loadu_ps(from + row / 16 * 1024 + row % 16 * 16);
            if (column < n_in) {
                _mm512_storeu_ps(d_x + row * n_in + column, d);
            } else {
                if (keep) d = _mm512_mul_ps(d, _mm512_set1_ps(keep[row]));
                _mm512_storeu_ps(d_h + row * width + column - n_in, d);
            }
        }
    }
}

EXPORT FOR_AMX void amx_backward(const AmxBackwardCall *call) {
    const int batch = call->batch, dim = call->dim, width = call->width;
    const size_t rows = PADDED(batch), n_in = call->n_in, both = n_in + width;
    const bfloat16 *restrict packed = call->packed, *restrict packed_w_p = call->packed_w_p;
    const bfloat16 *restrict hidden = call->hidden;
    const float *restrict keep = call->keep, *restrict cells = call->cells;
    const float *restrict d_hidden = call->d_hidden, *restrict d_cells = call->d_cells;
    bfloat16 *restrict gates = call->gates, *restrict d_proj = call->d_proj;
    float *restrict d_h = call->d_h, *restrict d_c = call->d_c, *restrict work = call->work;
    float *d_out = work + rows * both;
    const float proj_bound = from_bfloat16(to_bfloat16(call->proj_bound)); /* rounded as the values in hidden are */
    tiles_begin();
    for (size_t t = (size_t)call->steps; t-- > 0;) {
        const float *keep_step = keep ? keep + t * batch : NULL;
        const float *above = d_cells ? d_cells + t * batch * dim : NULL;
        const float *cell_in = cells + t * rows * dim, *cell_out = cell_in + rows * dim;
        bfloat16 *d_projected = d_proj + t * rows * width, *of_step = gates + t * rows * 4 * dim;
        stop_clipped(batch, rows, width, d_h, d_hidden ? d_hidden + t * batch * width : NULL,
                     hidden + (t + 1) * rows * width, proj_bound, d_projected);
        BARRIER();
        /* The cells of a chunk of 64 units are computed between the multiplications for the previous chunk. */
        for (size_t chunk = 0; chunk <= (size_t)dim; chunk += 64) {
            size_t n_cells = chunk < (size_t)dim ? rows * 4 : 0, done = 0, step = 0, all = both * rows / 128;
            Chunk now = {cell_in + chunk * rows, cell_out + chunk * rows, above ? above + chunk : NULL, keep_step,
                         d_out, d_c + chunk * rows, of_step + chunk * 4 * rows, dim, rows, batch, call->cell_bound};
            for (size_t row = 0; row < rows && n_cells; row += 16) {
                tiles_zero();
                for (int k = 0; k < width; k += 32)
                    tiles_multiply(d_projected + row * width + k, 2 * width, packed_w_p + chunk * width + k * 64);
                tiles_store(d_out + row * 64);
            }
            if (chunk == 0) {
                for (; done < n_cells; done++) cell_row_back(&now, done / 4, done % 4 * 16);
                BARRIER();
                continue;
            }
            const bfloat16 *left = of_step + (chunk - 64) * 4 * rows, *right = packed + (chunk - 64) * 4 * both;
            for (size_t group = 0; group < both; group += 64)
                for (size_t row = 0; row < rows; row += 16) {
                    float *total = work + group * rows + row * 64;
                    if (chunk > 64) tiles_load(total);
                    else tiles_zero();
                    for (size_t k = 0; k < 8; k++) {
                        tiles_multiply(left + (k * rows + row) * 32, 64, right + group * 256 + k * GROUP);
                        for (step++; done * all < n_cells * step; done++)
                            cell_row_back(&now, done / 4, done % 4 * 16);
                    }
                    tiles_store(total);
                }
        }
        split(batch, rows, n_in, width, work, keep_step, call->d_x + t * batch * n_in, d_h);
    }
    tiles_end();
}

/* Gradients of weights: the transpose of the inputs of a layer times the gradients of its outputs, summed over all rows
 * of all steps. */

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
