#include "samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BRIGHTEST = 16, LONGEST_LINE = 1024 };

/* Reads a number from 0 to `most` at `*text`, and moves behind it. */
static bool read_number(const char **text, long most, long *number)
{
    char *end;
    errno = 0;
    *number = strtol(*text, &end, 10);
    if (end == *text || errno != 0 || *number < 0 || *number > most) {
        return false;
    }
    *text = end;
    return true;
}

/* Reads a line into image and label number `samples->count`. */
static bool read_line(const char *line, struct samples *samples)
{
    float *image = samples->images + samples->count * PIXELS;
    long number;
    for (int pixel = 0; pixel < PIXELS; ++pixel) {
        if (!read_number(&line, BRIGHTEST, &number) || *line++ != ',') {
            return false;
        }
        image[pixel] = (float)number / BRIGHTEST;
    }
    if (!read_number(&line, 9, &number) || line[strspn(line, "\r\n")] != '\0') {
        return false;
    }
    samples->labels[samples->count] = number;
    return true;
}

/* Makes room for as many images again, and for `batch` at least. */
static bool grow(struct samples *samples, size_t batch)
{
    const size_t added = samples->room > 0 ? samples->room : batch;
    const size_t room = samples->room + added;
    if (room < added || room > SIZE_MAX / (PIXELS * sizeof(float))) {
        return false;
    }
    float *images = realloc(samples->images, room * PIXELS * sizeof(float));
    if (images == NULL) {
        return false;
    }
    samples->images = images;
    int64_t *labels = realloc(samples->labels, room * sizeof(int64_t));
    if (labels == NULL) {
        return false;
    }
    samples->labels = labels;
    memset(images + samples->room * PIXELS, 0, added * PIXELS * sizeof(float));
    memset(labels + samples->room, 0, added * sizeof(int64_t));
    samples->room = room;
    return true;
}

static bool read_lines(FILE *file, const char *path, size_t batch, struct samples *samples)
{
    char line[LONGEST_LINE];
    while (fgets(line, sizeof line, file) != NULL) {
        if (samples->count == samples->room && !grow(samples, batch)) {
            fprintf(stderr, "%s: not enough memory for %zu images\n", path, samples->count + 1);
            return false;
        }
        if (!read_line(line, samples)) {
            fprintf(stderr, "%s:%zu: expected %d numbers from 0 to %d and a digit, separated by commas\n", path,
                    samples->count + 1, PIXELS, BRIGHTEST);
            return false;
        }
        ++samples->count;
    }
    if (ferror(file)) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    if (samples->count == 0) {
        fprintf(stderr, "%s: no images\n", path);
        return false;
    }
    return true;
}

bool samples_read(const char *path, size_t batch, struct samples *samples)
{
    *samples = (struct samples){0, 0, NULL, NULL};
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    const bool read = read_lines(file, path, batch, samples);
    fclose(file);
    if (!read) {
        samples_free(samples);
    }
    return read;
}

void samples_free(struct samples *samples)
{
    free(samples->images);
    free(samples->labels);
    *samples = (struct samples){0, 0, NULL, NULL};
}
