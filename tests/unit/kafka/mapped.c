/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "mapped.h"

#include <stdlib.h>
#include <string.h>

static struct mapped last;

int mapped_end(void **state)
{
    (void)state;
    props_deinit(&last.out);
    buf_deinit(&last.remarks);
    return 0;
}

struct mapped *mapped_run(enum client_kind kind, ...)
{
    struct props java;
    const char *key;
    va_list args;

    mapped_end(NULL);
    memset(&last, 0, sizeof(last));
    buf_init(&last.remarks, 1 << 16);
    mock_kafka_props(&java, "bootstrap.servers", "b:9092", NULL);
    va_start(args, kind);
    while ((key = va_arg(args, const char *)) != NULL)
        assert_int_equal(props_set(&java, key, va_arg(args, const char *)), 0);
    va_end(args);
    last.rc = client_conf_map(kind, &java, &last.out, mock_kafka_remark, &last.remarks, &last.err);
    props_deinit(&java);
    return &last;
}

static void mapped_ok(const struct mapped *m)
{
    if (m->rc != 0)
        fail_msg("%s", m->err.text);
}

void mapped_value(const struct mapped *m, const char *rdkafka, const char *value)
{
    const char *is = props_get(&m->out, rdkafka);

    mapped_ok(m);
    if (is == NULL || strcmp(is, value) != 0)
        fail_msg("%s is %s, not %s", rdkafka, is != NULL ? is : "unset", value);
}

void mapped_unset(const struct mapped *m, const char *rdkafka)
{
    mapped_ok(m);
    if (props_get(&m->out, rdkafka) != NULL)
        fail_msg("%s is set to %s", rdkafka, props_get(&m->out, rdkafka));
}

void mapped_refused(const struct mapped *m, ...)
{
    const char *part;
    va_list args;

    assert_int_equal(m->rc, MR_ERR_CONFIG);
    assert_int_equal(m->err.code, MR_ERR_CONFIG);
    va_start(args, m);
    while ((part = va_arg(args, const char *)) != NULL)
        if (strstr(m->err.text, part) == NULL)
            fail_msg("\"%s\" is not in: %s", part, m->err.text);
    va_end(args);
}

void mapped_remark(const struct mapped *m, const char *part)
{
    mapped_ok(m);
    if (m->remarks.len == 0 || strstr(m->remarks.data, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, m->remarks.len > 0 ? m->remarks.data : "(nothing)");
}

void mapped_silent(const struct mapped *m)
{
    mapped_ok(m);
    if (m->remarks.len > 0)
        fail_msg("%s", m->remarks.data);
}
