/* Arguments of the functions that have many, and how arrays are laid out. calls.py has the same structs and constants,
 * and a test compares the two.
 *
 * Shapes are those of the plain arrays.
 * rows: on AMX the batch, padded to a multiple of ROW_MULTIPLE; else the next odd number.
 * Operands are the values that are multiplied: bfloat16 or float32, which depends on the function.
 * The sums of an input are the input times its weight, bias included: one value for each gate of each unit.
 * A bound is infinite if nothing is clipped. */
#ifndef SPACY_ELMO_CALLS_H
#define SPACY_ELMO_CALLS_H
#include <stdint.h>

/* Layouts of the arrays of compiled LSTM layers.
 *
 * A matrix multiplication has a left operand (rows, k) and a right operand (k, n). A row of a tile holds 16 float32
 * sums or 64 bytes of operands.
 * K_BLOCK: operands of a row that lie next to each other: 32 of bfloat16 or 16 of float32.
 * PAIR: operands of a row that one instruction multiplies and adds to one sum: 2 of bfloat16 or 1 of float32.
 *   blocked (rows, n): [n / K_BLOCK][rows][K_BLOCK]. So a tile of a left operand is one contiguous piece of memory.
 *   cells (rows, dim): [dim / UNITS][rows][UNITS]. In plain row order the rows would begin a power of two apart, and
 *   would push each other out of the cache (measured: twice the time).
 *   inputs (n, 4 dim): [dim / UNITS][n][GATES][UNITS]: the sums of the gates for each row or word, bias included.
 *   gates (rows, 4 dim), AMX in training: [dim / UNITS][2][rows][2][UNITS]: i next to j, and f next to o. This is a
 *   blocked array of bfloat16 whose columns are in that order.
 *   packed (k, n), a right operand of scan.inc: [n / COLUMNS][k / PAIR][COLUMNS][PAIR]. If it is narrow, [n / COLUMNS]
 *   [k][COLUMNS / (2 LANES)][LANES][2]: column c lies beside column c + LANES, so that one register has both.
 *   packed (k, n), a right operand of AMX: groups of four tiles, [n / 64][k / 32][4][16 pairs of k][16][2].
 * In a packed weight of gates, each 64 columns are the four gates of UNITS units, in the order of enum Gate. */
enum Gate { GATE_I, GATE_J, GATE_F, GATE_O, GATES }; /* input gate, candidate, forget gate, output gate */

#define UNITS 16             /* units of a layer whose gates are stored together */
#define ROW_MULTIPLE 32      /* on AMX the number of rows is padded to a multiple of this */
#define AMX_SIZE_MULTIPLE 64 /* sizes of layers on AMX are multiples of this: the columns of four tiles */
#define INPUTS_ALIGNMENT 64  /* bytes: alignment of arrays that are written to memory without the caches */
#define GRADIENT_GROUPS 8    /* groups of 64 columns whose sums fit into the second-level cache together */
#define MAX_POSITIONS 256    /* characters of a word at most: the position of a maximum is stored in a byte */

#define PADDED(rows) (((size_t)(rows) + ROW_MULTIPLE - 1) / ROW_MULTIPLE * ROW_MULTIPLE)

/* One direction of one layer over rows of different lengths, only forward: amx_layer, avx512_bf16_layer,
 * avx512_layer, avx2_layer, neon_layer.
 *
 * A place is the number of a row of `inputs`. Several positions may have the same place: those of the same word. */
typedef struct {
    int32_t batch;         /* rows in use; the work arrays have room for the padded number */
    int32_t dim;           /* units of the cell */
    int32_t width;         /* columns of the layer's input, of the state h and of the output */
    int32_t n_precomputed; /* rows of x whose sums are computed once, before the first step */
    int32_t n_inputs;      /* rows of inputs: n_precomputed and those of the largest chunk */
    int32_t n_chunks;      /* a chunk is some consecutive steps, whose sums of inputs are computed together */
    int32_t h_stride;      /* values from one row of h to the next */
    int32_t c_stride;      /* values from one row of c to the next */
    int32_t narrow;        /* 1: the packed weights are bfloat16, although the operands are float32 */
    const int64_t *chunks;      /* (n_chunks, 4): first step, how many steps, first entry of by_chunk, how many */
    const int64_t *precomputed; /* (n_precomputed): the rows of x whose sums are computed once */
    const int64_t *by_chunk;    /* rows of x whose sums are computed chunk by chunk; NULL: every row of x, in order */
    const int32_t *active;      /* (steps): how many rows have this step; steps in the order in which they are read */
    const int64_t *offsets;     /* (steps): the first position of the step in places and out */
    const int32_t *places;      /* (positions): row of inputs. The n_precomputed rows come first, then the chunk's. */
    const float *x;             /* (any, width): the layer's input */
    const float *h;             /* (batch, width): the state before the first step */
    const float *c;             /* (batch, dim): the cells before the first step */
    const void *packed_inputs;    /* operands or bfloat16: the weight of the input (width, 4 dim), packed */
    const void *packed_recurrent; /* the same: the weight of the state (width, 4 dim), packed */
    const void *packed_w_p;       /* the same: the projection (dim, width), packed */
    const float *bias;            /* (4 dim): the forget bias is included */
    void *blocked; /* work, operands (the greater of n_precomputed and the rows of the largest chunk; width) */
    void *inputs;  /* work, float16 or float32 (n_inputs, 4 dim), at a multiple of INPUTS_ALIGNMENT */
    float *cells;  /* (rows, dim): out, the cells after the last step */
    void *state;   /* work, operands (rows, width), blocked */
    void *outs;    /* work, operands (rows, dim), blocked: outputs of the cells, before the projection */
    float *out;    /* (positions, width): out, the projected and clipped outputs */
    float cell_bound; /* of the cells */
    float proj_bound; /* of the projected outputs */
} LayerCall;

/* One direction of one layer over a window of steps, in bfloat16 on AMX, for training: amx_forward. */
typedef struct {
    int32_t steps;
    int32_t batch;
    int32_t dim;
    int32_t n_in;  /* columns of the layer's input */
    int32_t width; /* columns of the state h */
    uint16_t *inputs;           /* (steps, rows, n_in + width): x, 0 in padding; the loop writes h after x */
    const uint16_t *packed;     /* (n_in + width, 4 dim), packed: the weight of input and state */
    const uint16_t *packed_w_p; /* (dim, width), packed: the projection */
    const float *bias;          /* (4 dim): the forget bias is included */
    const float *keep;          /* (steps, batch): factor of the state before a step, 0 resets it; or NULL */
    float *cells;               /* (steps + 1, rows, dim): in: before the first step; out: after each step */
    uint16_t *hidden;           /* (steps + 1, rows, width): the states, as cells */
    uint16_t *gates;            /* (steps, rows, 4 dim), at a multiple of INPUTS_ALIGNMENT: out, the activations */
    uint16_t *outs;             /* (steps, rows, dim), blocked: out, before the projection */
    float cell_bound;
    float proj_bound;
} AmxForwardCall;

/* The backward pass of amx_forward: amx_backward. Sizes are as in AmxForwardCall. */
typedef struct {
    int32_t steps;
    int32_t batch;
    int32_t dim;
    int32_t n_in;
    int32_t width;
    const uint16_t *packed;     /* the transpose of the weight, from amx_pack_gates_transposed */
    const uint16_t *packed_w_p; /* the transpose of the projection, from amx_pack_transposed */
    const float *keep;          /* as in AmxForwardCall */
    const float *cells;         /* as amx_forward left them */
    const uint16_t *hidden;     /* as amx_forward left them */
    const float *d_hidden;      /* (steps, batch, width): gradients of hidden from outside the loop; or NULL */
    const float *d_cells;       /* (steps, batch, dim), rows in plain order: the same for cells; or NULL */
    uint16_t *gates;            /* in: as amx_forward left them; out: the gradients of the sums */
    float *d_x;                 /* (steps, batch, n_in): out, the gradients of the input */
    uint16_t *d_proj;           /* (steps, rows, width): out, gradients of the projected, unclipped outputs */
    float *d_h;                 /* (batch, width): in: gradient of the last state; out: gradient of the first state */
    float *d_c;                 /* (rows, dim), laid out as cells: the same for the cells */
    float *work;                /* (rows, n_in + width + 64): scratch */
    float cell_bound;
    float proj_bound;
} AmxBackwardCall;

/* The gradient of a weight: the transpose of `left` times `right`, summed over all rows of all steps:
 * amx_weight_gradient. */
typedef struct {
    int32_t steps;
    int32_t rows;              /* of a step, padding included */
    int32_t m;                 /* rows of the gradient */
    int32_t n;                 /* columns of the gradient */
    int32_t tile_stride;       /* columns of the gradient from one tile of right to the next in a group of four */
    int32_t group_stride;      /* columns of the gradient from one group of four tiles to the next */
    const uint16_t *left;      /* (steps * rows, m), from amx_pack_left */
    const uint16_t *right;     /* (steps, rows, n): each step is blocked or in the layout of gates */
    float *gradient;           /* (m, n): out */
    float *totals;             /* (n): out, the sum of each column of right over all rows */
    float *work;               /* (GRADIENT_GROUPS * 64, m): scratch */
} AmxGradientCall;

#endif
