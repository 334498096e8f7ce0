/* writers_filter: everybody may look, and only some machines may change anything. With
 *
 *   rest.extension.classes=WritersFilter
 *   millrace.rest.filter.writers=127.0.0.1,10.0.0.7
 *
 * requests that change something are let through from these addresses alone. What another worker of
 * the cluster sends on comes from that worker's, and what comes through a proxy from the proxy's:
 * they belong on the list, or the filter looks at the header Authorization instead, which alone
 * goes along. */
#include <millrace/plugin.h>

#include <string.h>

struct writers {
    const struct mr_task *task;
};

static const struct mr_config_key writers_keys[] = {
    {"writers", MR_CFG_LIST, MR_CFG_REQUIRED | MR_CFG_NON_EMPTY,
     .doc = "Addresses that may change something"},
    {0},
};

static int writers_start(void *self, struct mr_task *task, struct mr_error *err)
{
    struct writers *w = self;

    w->task = task;
    return MR_OK;
}

static int writers_admit(void *self, struct mr_request *req, struct mr_error *err)
{
    const struct writers *w = self;
    const char *method = mr_request_method(req), *client = mr_request_client(req);

    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 || strcmp(method, "OPTIONS") == 0)
        return MR_OK;
    for (size_t i = 0; i < mr_config_count(w->task, "writers"); i++)
        if (strcmp(mr_config_item(w->task, "writers", i), client) == 0)
            return MR_OK;
    mr_refuse(req, 403, "This address may look, and change nothing");
    return MR_OK;
}

MR_REST_FILTER(WritersFilter, "1.0", .keys = writers_keys, .state_size = sizeof(struct writers),
               .start = writers_start, .admit = writers_admit)
