/* SPDX-License-Identifier: Apache-2.0 */
/* A plain main for a fuzzer: every file named on the command line is one input. With it `make
 * check` replays the seeds of tests/fuzz/seeds in every variant, without clang. A finding shows as
 * a crash or as a sanitizer's report. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_MAX (16u * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input stands at the end of an allocation of just its size, so that a read past it is seen. */
static int replay(const char *path)
{
    FILE *in = fopen(path, "rb");
    uint8_t *all, *data;
    size_t len;

    if (in == NULL) {
        perror(path);
        return 1;
    }
    all = malloc(INPUT_MAX);
    len = all == NULL ? 0 : fread(all, 1, INPUT_MAX, in);
    fclose(in);
    data = malloc(len == 0 ? 1 : len);
    if (all == NULL || data == NULL) {
        fprintf(stderr, "%s: out of memory\n", path);
        free(all);
        free(data);
        return 1;
    }
    for (size_t i = 0; i < len; i++)
        data[i] = all[i];
    free(all);
    LLVMFuzzerTestOneInput(data, len);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "%s: no seeds in tests/fuzz/seeds\n", argv[0]);
        return 1;
    }
    for (int i = 1; i < argc; i++)
        if (replay(argv[i]) != 0)
            return 1;
    printf("%d inputs\n", argc - 1);
    return 0;
}
