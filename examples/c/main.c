/* Recognises handwritten digits with a network that was trained in Python and compiled to a library.
 *
 *     digits DIGITS.csv [SCORES.f32]
 *
 * Prints how many of the images are recognised. SCORES.f32 gets what the network computes: ten floats for each
 * image, as they are in memory. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network.h" /* written by mind-mlir, with the library */
#include "samples.h"

enum { CLASSES = 10 };

/* What one call of the network works with. BATCH, the number of images, comes from the build, which also tells the
 * compiler. */
struct work {
    int64_t digits[BATCH];
    float scores[BATCH * CLASSES];
    unsigned char scratch[NETWORK_CLASSIFY_SCRATCH_BYTES + NETWORK_SCRATCH_ALIGNMENT];
};

/* Returns the first address in `memory` from which on it is scratch memory. */
static void *aligned(unsigned char *memory)
{
    return memory + (NETWORK_SCRATCH_ALIGNMENT - (uintptr_t)memory % NETWORK_SCRATCH_ALIGNMENT);
}

static size_t count_hits(const int64_t *digits, const int64_t *labels, size_t count)
{
    size_t hits = 0;
    for (size_t i = 0; i < count; ++i) {
        hits += digits[i] == labels[i];
    }
    return hits;
}

/* Classifies all samples, a batch at a time; the last batch is filled up with empty images. Appends the scores to
 * `file` unless it is null. */
static bool classify(const struct samples *samples, struct work *work, FILE *file, size_t *hits)
{
    *hits = 0;
    for (size_t start = 0; start < samples->count; start += BATCH) {
        const size_t left = samples->count - start;
        const size_t count = left < BATCH ? left : BATCH;
        const int status =
            network_classify(samples->images + start * PIXELS, work->digits, work->scores, aligned(work->scratch));
        if (status != 0) {
            fprintf(stderr, "images from %zu on: %s\n", start, network_message(status));
            return false;
        }
        *hits += count_hits(work->digits, samples->labels + start, count);
        if (file != NULL && fwrite(work->scores, CLASSES * sizeof(float), count, file) != count) {
            return false;
        }
    }
    return true;
}

/* Classifies all samples and prints the accuracy; writes the scores to a file called `path` unless it is null. */
static bool run(const struct samples *samples, struct work *work, const char *path)
{
    FILE *file = NULL;
    if (path != NULL && (file = fopen(path, "wb")) == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    size_t hits;
    const bool done = classify(samples, work, file, &hits);
    if (file != NULL) {
        const bool failed = ferror(file) != 0;
        if (fclose(file) != 0 || failed) {
            fprintf(stderr, "%s: cannot be written\n", path);
            return false;
        }
    }
    if (!done) {
        return false;
    }
    const double share = 100.0 * (double)hits / (double)samples->count;
    printf("%zu of %zu digits recognised: %.2f %%\n", hits, samples->count, share);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("standard output cannot be written\n", stderr);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s DIGITS.csv [SCORES.f32]\n", argc > 0 ? argv[0] : "digits");
        return EXIT_FAILURE;
    }
    struct samples samples;
    if (!samples_read(argv[1], BATCH, &samples)) {
        return EXIT_FAILURE;
    }
    struct work *work = malloc(sizeof *work);
    if (work == NULL) {
        fputs("not enough memory\n", stderr);
    }
    const bool done = work != NULL && run(&samples, work, argv[2]);
    free(work);
    samples_free(&samples);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
