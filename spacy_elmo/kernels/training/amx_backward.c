/* One direction of one LSTM layer over a window of steps, backward. */
#include "../common/amx.h"
#include "../common/calls.h"

#ifdef COMPILES_BF16
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
#endif
