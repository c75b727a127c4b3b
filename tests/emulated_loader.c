/* Maps an image into memory, as `mind_mlir.image.loading` does, and calls its entries: for machines that have no
   Python, under an emulator. The job and its answer are files, whose form `emulated.py` describes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, NAME_BYTES = 64, WORD = 8 };
/* What the memory of an argument is for: an output, or an input. */
enum { TAKEN, GIVEN };

static const uint8_t *at;

static uint64_t number(void) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    at += sizeof value;
    return value;
}

static void fail(const char *what, const char *name) {
    fprintf(stderr, "loader: %s %s\n", what, name);
    exit(1);
}

static uint8_t *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) fail("cannot read", path);
    long size = ftell(file);
    uint8_t *data = malloc(size);
    rewind(file);
    if (!data || fread(data, 1, size, file) != (size_t)size) fail("cannot read", path);
    fclose(file);
    return data;
}

/* Adds to the words at the places that follow. */
static void add(uint8_t *image, uint64_t value) {
    for (uint64_t count = number(); count; count--) {
        uint8_t *word = image + number();
        uint64_t sum;
        memcpy(&sum, word, WORD);
        sum += value;
        memcpy(word, &sum, WORD);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) fail("usage:", "loader JOB ANSWER");
    at = read_file(argv[1]);
    uint64_t size = number(), text = number(), constants = number(), bytes = number();
    uint8_t *image = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (image == MAP_FAILED) fail("no memory for", argv[1]);
    memcpy(image, at, bytes);
    at += bytes;
    add(image, (uint64_t)image);
    for (uint64_t count = number(); count; count--) {
        const char *name = (const char *)at;
        void *found = dlsym(RTLD_DEFAULT, name);
        if (!found) fail("there is no", name);
        at += NAME_BYTES;
        add(image, (uint64_t)found);
    }
    __builtin___clear_cache((char *)image, (char *)image + text);
    if (mprotect(image, text, PROT_READ | PROT_EXEC)) fail("no code in", argv[1]);
    if (constants && mprotect(image + text, constants, PROT_READ)) fail("no constants in", argv[1]);

    FILE *answer = fopen(argv[2], "wb");
    if (!answer) fail("cannot write", argv[2]);
    for (uint64_t calls = number(); calls; calls--) {
        void (*entry)(void **) = (void (*)(void **))(image + number());
        uint64_t count = number();
        void **table = malloc(count * sizeof *table);
        uint64_t *sizes = malloc(count * sizeof *sizes), *given = malloc(count * sizeof *given);
        for (uint64_t place = 0; place < count; place++) {
            sizes[place] = number();
            given[place] = number();
            if (posix_memalign(&table[place], ALIGNMENT, sizes[place] + ALIGNMENT)) fail("no memory", "");
            if (given[place] == GIVEN) {
                memcpy(table[place], at, sizes[place]);
                at += (sizes[place] + WORD - 1) / WORD * WORD;
            }
        }
        entry(table);
        for (uint64_t place = 0; place < count; place++)
            if (given[place] == TAKEN) fwrite(table[place], 1, sizes[place], answer);
    }
    return fclose(answer) != 0;
}
