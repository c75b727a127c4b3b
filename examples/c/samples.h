/* Images of handwritten digits and what they show, read from a table of numbers separated by commas. */

#ifndef SAMPLES_H
#define SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PIXELS = 64 }; /* 8 x 8, row by row */

struct samples {
    size_t count;
    size_t room;     /* images and labels that there is memory for: whole batches, zeros behind the last image */
    float *images;   /* [room][PIXELS], 0 (paper) to 1 (ink) */
    int64_t *labels; /* [room], 0 to 9 */
};

/* Reads `path`: a line for each image, PIXELS whole numbers from 0 to 16 and the digit. The room is made a multiple
 * of `batch`. Says on standard error what is wrong with the file, and returns false. */
bool samples_read(const char *path, size_t batch, struct samples *samples);

/* Gives the memory back. */
void samples_free(struct samples *samples);

#endif
