/* Layouts of the arrays of compiled LSTM layers, and the constants that describe them. Python has the same
 * constants in calls.py, and a test compares the two.
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
#ifndef SPACY_ELMO_LAYOUTS_H
#define SPACY_ELMO_LAYOUTS_H

enum Gate { GATE_I, GATE_J, GATE_F, GATE_O, GATES }; /* input gate, candidate, forget gate, output gate */

#define UNITS 16             /* units of a layer whose gates are stored together */
#define ROW_MULTIPLE 32      /* on AMX the number of rows is padded to a multiple of this */
#define AMX_SIZE_MULTIPLE 64 /* sizes of layers on AMX are multiples of this: the columns of four tiles */
#define INPUTS_ALIGNMENT 64  /* bytes: alignment of arrays that are written to memory without the caches */
#define GRADIENT_GROUPS 8    /* groups of 64 columns whose sums fit into the second-level cache together */
#define MAX_POSITIONS 256   /* characters of a word at most: the position of a maximum is stored in a byte */

#define PADDED(rows) (((size_t)(rows) + ROW_MULTIPLE - 1) / ROW_MULTIPLE * ROW_MULTIPLE)

#endif
