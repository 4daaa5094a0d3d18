/* Compares a compiled layer with double precision: scripts/harness/layer_check.sh compiles and runs it.
 * LAYER: the function; LANES: float32 values of its registers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../spacy_elmo/kernels/calls.h"

void LAYER(const LayerCall *call);

#define DIM 64
#define WIDTH 32
#define COLUMNS 16
#define ODD(n) ((n) | 1)
enum { N = 9 * 7, LONGEST = 9 };

static float random_value(void) {
    float x = (float)rand() / (float)RAND_MAX - 0.5f;
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits &= 0xffff0000; /* exact in bfloat16 */
    memcpy(&x, &bits, 4);
    return x;
}

static float *values(size_t n) {
    float *x = aligned_alloc(64, (n * 4 + 63) / 64 * 64);
    for (size_t i = 0; i < n; i++) x[i] = random_value();
    return x;
}

/* Packs a weight (k, n); gates: its columns are four gates of n / 4 units. */
static void *packed(const float *w, int k, int n, int gates, int narrow) {
    char *to = aligned_alloc(64, (size_t)k * n * 4);
    for (int row = 0; row < k; row++)
        for (int column = 0; column < n; column++) {
            int from = gates ? column / 16 % 4 * (n / 4) + column / 64 * 16 + column % 16 : column;
            size_t group = column / COLUMNS, at = column % COLUMNS, base = (group * k + row) * COLUMNS;
            const char *value = (const char *)(w + (size_t)row * n + from);
            size_t place = at / (2 * LANES) * 2 * LANES + at % LANES * 2 + at / LANES % 2;
            if (narrow) memcpy(to + (base + place) * 2, value + 2, 2);
            else memcpy(to + (base + at) * 4, value, 4);
        }
    return to;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double clip(double x, double bound) { return fmax(-bound, fmin(bound, x)); }

static double largest_error(int rows, int narrow) {
    float *x = values(N * WIDTH), *h = values(rows * WIDTH), *c = values(rows * DIM), *bias = values(4 * DIM);
    float *w_x = values(WIDTH * 4 * DIM), *w_h = values(WIDTH * 4 * DIM), *w_p = values(DIM * WIDTH);
    int32_t active[LONGEST], places[N];
    int64_t offsets[LONGEST], chunks[4] = {0, LONGEST, 0, 0};
    int positions = 0;
    for (int t = 0; t < LONGEST; t++) { /* the rows become fewer */
        active[t] = rows - rows * t / LONGEST;
        offsets[t] = positions;
        for (int r = 0; r < active[t]; r++, positions++) places[positions] = positions;
    }
    chunks[3] = positions;
    LayerCall call = {rows, DIM, WIDTH, 0, positions, 1, WIDTH, DIM, narrow, chunks, NULL, NULL, active, offsets, places,
                      x, h, c, packed(w_x, WIDTH, 4 * DIM, 1, narrow), packed(w_h, WIDTH, 4 * DIM, 1, narrow),
                      packed(w_p, DIM, WIDTH, 0, narrow), bias, values(ODD(positions) * WIDTH),
                      values(positions * 4 * DIM), values(ODD(rows) * DIM), values(ODD(rows) * WIDTH),
                      values(ODD(rows) * DIM), values(positions * WIDTH), 0.7f, 0.6f};
    LAYER(&call);
    double worst = 0, state[N][WIDTH], cells[N][DIM], outs[DIM], z[4];
    for (int r = 0; r < rows; r++) {
        for (int i = 0; i < WIDTH; i++) state[r][i] = h[r * WIDTH + i];
        for (int i = 0; i < DIM; i++) cells[r][i] = c[r * DIM + i];
        for (int t = 0; t < LONGEST && r < active[t]; t++) {
            const long at = offsets[t] + r;
            for (int unit = 0; unit < DIM; unit++) {
                for (int gate = 0; gate < 4; gate++) {
                    z[gate] = bias[gate * DIM + unit];
                    for (int i = 0; i < WIDTH; i++)
                        z[gate] += (double)x[at * WIDTH + i] * w_x[i * 4 * DIM + gate * DIM + unit] +
                                   state[r][i] * w_h[i * 4 * DIM + gate * DIM + unit];
                }
                cells[r][unit] = clip(sigmoid(z[GATE_F]) * cells[r][unit] + sigmoid(z[GATE_I]) * tanh(z[GATE_J]), 0.7f);
                outs[unit] = sigmoid(z[GATE_O]) * tanh(cells[r][unit]);
            }
            for (int i = 0; i < WIDTH; i++) {
                double sum = 0;
                for (int unit = 0; unit < DIM; unit++) sum += outs[unit] * w_p[unit * WIDTH + i];
                state[r][i] = clip(sum, 0.6f);
                worst = fmax(worst, fabs(state[r][i] - call.out[at * WIDTH + i]));
            }
        }
    }
    return worst;
}

int main(void) {
    double worst = 0;
    for (int rows = 1; rows <= 7; rows++)
        for (int narrow = 0; narrow < 2; narrow++) worst = fmax(worst, largest_error(rows, narrow));
    printf("largest difference from double precision: %.2g\n", worst);
    return !(worst < 2e-6);
}
