/* Arguments of the calls that have many. calls.py mirrors these structs; a test compares the two.
 *
 * Shapes are those of the arrays before they are laid out; layouts: see layouts.h. rows: the batch, padded. A bound is
 * infinite where nothing is clipped. Operands are bfloat16 or float32, by the call. */
#ifndef SPACY_ELMO_CALLS_H
#define SPACY_ELMO_CALLS_H
#include <stdint.h>

/* One direction of one layer over rows of different lengths, forward alone: amx_layer, avx512_layer,
 * avx512_bf16_layer. */
typedef struct {
    int32_t batch;    /* rows that are there; the work arrays have room for them padded */
    int32_t dim;      /* units */
    int32_t width;    /* of the layer's input, of the state h and of the output */
    int32_t n_kept;   /* rows of x whose sums are taken once, for all steps */
    int32_t n_inputs; /* rows of inputs */
    int32_t n_chunks;
    int32_t h_stride; /* values from one row of h to the next */
    int32_t c_stride;
    const int64_t *chunks;  /* (n_chunks, 4): the first step and how many; the first of fresh and how many */
    const int64_t *kept;    /* (n_kept): rows of x */
    const int64_t *fresh;   /* rows of x whose sums are taken chunk after chunk; NULL: those of x itself */
    const int32_t *active;  /* (steps): rows of each step; steps in the order in which they are read */
    const int64_t *offsets; /* (steps): where a step's positions begin in places and out */
    const int32_t *places;  /* (positions): into the sums kept and, after them, a chunk's */
    const float *x;         /* (any, width): the layer's input */
    const float *h;         /* (batch, width): the state to start from */
    const float *c;         /* (batch, dim) */
    const void *packed_inputs;    /* operands: the weight of the input (width, 4 dim), packed */
    const void *packed_recurrent; /* operands: the weight of the state (width, 4 dim), packed */
    const void *packed_w_p;       /* operands: the projection (dim, width), packed */
    const float *bias;            /* (4 dim), the forget bias included */
    void *blocked; /* work, operands (as many rows as are kept or are a chunk's, padded, width) */
    void *inputs;  /* work, float16 or float32 (n_inputs, 4 dim), at a multiple of INPUTS_ALIGNMENT */
    float *cells;  /* (rows, dim): those at the end, out */
    void *state;   /* work, operands (rows, width), blocked */
    void *outs;    /* work, operands (rows, dim), blocked: of the cells, before the projection */
    float *out;    /* (positions, width): projected and clipped, out */
    float cell_bound;
    float proj_bound;
} LayerCall;

/* One direction of one layer over a window of steps, in bfloat16 on AMX, for training: amx_forward. */
typedef struct {
    int32_t steps;
    int32_t batch;
    int32_t dim;
    int32_t n_in;  /* width of the layer's input */
    int32_t width; /* of the state h */
    uint16_t *inputs;           /* (steps, rows, n_in + width): x, zeros in the padding; the state is written beside */
    const uint16_t *packed;     /* the weight (n_in + width, 4 dim), packed */
    const uint16_t *packed_w_p; /* the projection (dim, width), packed */
    const float *bias;          /* (4 dim), the forget bias included */
    const float *keep;          /* (steps, batch): 0 where the state is forgotten before a step; or NULL */
    float *cells;               /* (steps + 1, rows, dim): step 0 in, the rest out */
    uint16_t *hidden;           /* (steps + 1, rows, width): step 0 in, the rest out */
    uint16_t *gates;            /* (steps, rows, 4 dim), at a multiple of INPUTS_ALIGNMENT: activated, out */
    uint16_t *outs;             /* (steps, rows, dim), blocked: before the projection, out */
    float cell_bound;
    float proj_bound;
} AmxForwardCall;

/* The same back: amx_backward. */
typedef struct {
    int32_t steps;
    int32_t batch;
    int32_t dim;
    int32_t n_in;
    int32_t width;
    const uint16_t *packed;     /* the weight's transpose, as amx_pack_gates_transposed gives it */
    const uint16_t *packed_w_p; /* the projection's transpose, as amx_pack_transposed gives it */
    const float *keep;          /* as forward */
    const float *cells;         /* as forward left them */
    const uint16_t *hidden;     /* as forward left them */
    const float *d_hidden;      /* (steps, batch, width): from above; or NULL */
    const float *d_cells;       /* (steps, batch, dim): from above, row by row; or NULL */
    uint16_t *gates;            /* as forward left them; the gradients of the sums, out */
    float *d_x;                 /* (steps, batch, n_in): out */
    uint16_t *d_proj;           /* (steps, rows, width): the gradients before the clip, out */
    float *d_h;                 /* (batch, width): the gradient of the last state in, that of the first out */
    float *d_c;                 /* (rows, dim), as cells: the same */
    float *work;                /* (rows, n_in + width + 64) */
    float cell_bound;
    float proj_bound;
} AmxBackwardCall;

#endif
