/* Layouts of the arrays of LSTM layers on AMX and AVX-512, and the constants behind them, which Python shares
 * (constants.py; a test compares the two).
 *
 * A register or a row of a tile holds 16 float32 sums, or 64 bytes of operands. K_BLOCK: operands of a row that lie
 * together, 32 of bfloat16 or 16 of float32; LANE: those that are multiplied at once, 2 or 1.
 *   blocked (rows, n): [n / K_BLOCK][rows][K_BLOCK], so that a left operand's tile is one stretch of memory.
 *   cells (rows, dim): [dim / UNITS][rows][UNITS]: rows one after another would lie a power of two apart, and drive
 *   each other out of the cache (measured: twice the time).
 *   inputs (n, 4 dim): [dim / UNITS][n][GATES][UNITS]: of each row or word the sums of the gates, bias included.
 *   gates (rows, 4 dim), AMX in training: [dim / UNITS][2][rows][2][UNITS]: i beside j, f beside o; a blocked array of
 *   bfloat16, in that order of n.
 *   packed (k, n), a right operand of AVX-512: [n / 32][k / LANE][32][LANE].
 *   packed (k, n), a right operand of AMX: groups of four tiles, [n / 64][k / 32][4][16 pairs of k][16][2].
 * Of packed weights of gates 64 columns are the gates of UNITS units, in their order. */
#ifndef SPACY_ELMO_LAYOUTS_H
#define SPACY_ELMO_LAYOUTS_H

enum Gate { GATE_I, GATE_J, GATE_F, GATE_O, GATES }; /* input gate, new content, forget gate, output gate */

#define UNITS 16             /* of a layer whose gates lie together */
#define ROW_MULTIPLE 32      /* rows are padded to a multiple of it */
#define AMX_SIZE_MULTIPLE 64 /* sizes of layers on AMX are multiples of it: the columns of four tiles */
#define AVX512_SIZE_MULTIPLE 32
#define INPUTS_ALIGNMENT 64  /* bytes, of arrays that are stored past the caches */
#define GRADIENT_GROUPS 8    /* of 64 columns, whose sums stay in the memory behind a core's nearest */
#define MAX_POSITIONS 256   /* of a word's characters: the place of a maximum is a byte */

#define PADDED(rows) (((size_t)(rows) + ROW_MULTIPLE - 1) / ROW_MULTIPLE * ROW_MULTIPLE)

#endif
