/* SPDX-License-Identifier: Apache-2.0 */
/* The output of `millrace check`: any bytes, in any pieces, give problems of keys that were asked,
 * or are called nonsense. */
#include "worker/supervisor/check_answers.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte says how long the pieces are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char asked[] = "[{\"keys\":[\"a\",\"b\"]},{\"keys\":[\"spec\"]}]";
    json_t *question = json_parse(asked, strlen(asked), NULL);
    struct check_answers a;
    size_t piece = size == 0 ? 1 : (size_t)data[0] + 1, i, n;
    json_t *problem;

    mr_assert(json_array_size(question) == 2);
    check_answers_init(&a, question);
    for (size_t at = size > 0; at < size; at += n) {
        n = size - at < piece ? size - at : piece;
        if (!check_answers_take(&a, data + at, n))
            break;
    }
    if (!a.ended)
        check_answers_broken(&a, "it ended");
    json_array_foreach(a.problems, i, problem)
    {
        int64_t stage;
        const char *key, *text;

        mr_assert(json_get_int(problem, "stage", 0, 1, &stage) &&
                  json_get_text(problem, "key", &key));
        mr_assert(stage == 1 ? strcmp(key, "spec") == 0
                             : strcmp(key, "a") == 0 || strcmp(key, "b") == 0);
        mr_assert(json_get_text(problem, "error", &text) !=
                  json_get_text(problem, "broken", &text));
    }
    check_answers_deinit(&a);
    json_decref(question);
    return 0;
}
