/* SPDX-License-Identifier: Apache-2.0 */
/* JSON of REST and link: any bytes give a value or an error, and what is written reads back the
 * same. */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    struct props p;
    json_t *value = json_parse((const char *)data, size, &err);
    json_t *again;
    char *text;

    if (value == NULL) {
        if (err.code == 0)
            abort();
        return 0;
    }
    text = json_text(value);
    again = text != NULL ? json_parse(text, strlen(text), &err) : NULL;
    if (again == NULL || !json_equal(value, again))
        abort();
    props_init(&p);
    json_to_props(value, &p, NULL);
    props_deinit(&p);
    free(text);
    json_decref(again);
    json_decref(value);
    return 0;
}
