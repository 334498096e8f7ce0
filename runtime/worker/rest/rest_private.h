/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: one request with its answer, and the call that works on
 * it on the worker's loop. */
#ifndef WORKER_REST_PRIVATE_H
#define WORKER_REST_PRIVATE_H

#include "worker/herder/herder.h"
#include "worker/rest/entities.h"
#include "worker/rest/request_json.h"
#include "worker/rest/request_offsets.h"
#include "worker/rest/router.h"

/* One request and its answer. Owner: the HTTP thread until it hands the exchange to the loop,
 * the loop until it gives it back through call_desk.finished, then the HTTP thread again. Nobody
 * else looks at it meanwhile. */
struct exchange {
    struct router_target target;
    struct router_match match;
    struct request_create
        input;         /* of a ROUTE_CREATE or ROUTE_CONFIG body (then only config is used) */
    json_t *offsets;   /* of a ROUTE_OFFSETS body: request_offsets.h; NULL none */
    bool input_absent; /* the body was empty or null */
    /* As they came, for another worker; NULL where there is none, or none is needed. Valid until
     * the answer is sent. */
    const char *body;
    size_t body_len;
    const char *authorization;
    const char *signature; /* X-Connect-Authorization */
    const char *signature_algorithm;
    int64_t since_ms;    /* monotonic: when the request was complete */
    int64_t deadline_ms; /* likewise: when it has to be answered */
    char base[280]; /* for Location: http:// and the Host header, or the worker's own host:port */
    struct answer answer;
    struct exchange *next; /* while it is in the gate */
};

/* Where calls are worked off. Owner: the loop. */
struct call_desk {
    struct loop *loop;
    struct herder *herder;   /* NULL until the worker is open: 503 */
    const char *closed_text; /* message of that 503 */
    struct call *first;      /* waiting calls */
    size_t changes;          /* of them ROUTE_CHANGE */
    size_t changes_max;      /* beyond it 503 */
    /* Answered: exchange is no longer ours. */
    void (*finished)(void *arg, struct exchange *exchange);
    void *arg;
};

/* One exchange being answered. Ended by exactly one call_reply_* from its route's function, or
 * from a herder_done. */
struct call;

/* Run the exchange's route and arm its deadline. Thread: the loop. */
void call_start(struct call_desk *desk, struct exchange *exchange);
/* Answer every waiting call with 503. The herder may still come back for them; it finds nobody. */
void call_abandon_all(struct call_desk *desk);

struct herder *call_herder(const struct call *call);
struct exchange *call_exchange(const struct call *call);
const char *call_var(const struct call *call, size_t i); /* decoded `{c}`: 0, or `{t}`: 1 */
int call_task(const struct call *call);

/* Each answers and ends the call, which is gone then. body: taken; NULL: out of memory. */
void call_reply_json(struct call *call, int status, json_t *body);
void call_reply_text(struct call *call, int status, struct buf *json); /* taken out of it */
void call_reply_empty(struct call *call, int status);
MR_PRINTF(3, 4)
void call_reply_error(struct call *call, int status, const char *fmt, ...);
void call_reply_health(struct call *call, int status, const char *health, const char *message);
/* 201 with Location when created, else 200; body as the herder gave it. */
void call_reply_written(struct call *call, const char *conn, const struct herder_answer *answer);

/* First thing in every herder_done: false when the call is over already (its deadline passed, or
 * the change failed and the error has been answered): return at once then. */
bool call_came_back(struct call *call, const struct herder_answer *answer);

/* Begin again what a call asks the herder for, once: false when it was already. Its exchange was
 * taken back. */
bool call_again(struct call *call);

/* Take the exchange back from whoever worked on it meanwhile; NULL: its deadline has passed, and
 * the call is gone. */
struct exchange *call_take_back(struct call *call);
void call_end(struct call *call); /* its answer is in the exchange */
/* Its answer is in the exchange, and goes out after max_ms, or with the deadline, unless call_end
 * came first. Whoever is still to end it then begins with call_take_back. */
void call_hold(struct call *call, int64_t max_ms);

/* Have another worker answer, by its URL ("": nobody knows which). Ends the call, at once or
 * when that worker has answered. */
void forward_call(struct call *call, const char *url);

/* Answer a request whose deadline has come. stage: as below, or "". Any thread that has the
 * exchange. */
void call_expire(struct exchange *exchange, const char *stage);
#define CALL_UNWELL \
    "Worker was unable to handle this request and may be unable to handle other requests."

#define CALL_STAGE_MAX 1500 /* bytes of what follows */
/* What the worker does now, and what it waits for, as sentences for time-outs and health: "The
 * worker is currently <stage>, which began at <time>. Kafka at … has not answered …", or "". */
void call_stage(struct herder *herder, char *out, size_t size);

/* The table of operations. */
extern const struct route routes[];
extern const size_t routes_count;

void res_root_info(struct call *call);
void res_root_version(struct call *call);
void res_root_openapi(struct call *call);
void res_root_health(struct call *call);
void res_plugins_list(struct call *call);
void res_plugins_config(struct call *call);
void res_plugins_validate(struct call *call);
void res_connectors_list(struct call *call);
void res_connectors_create(struct call *call);
void res_connectors_info(struct call *call);
void res_connectors_delete(struct call *call);
void res_connectors_config(struct call *call);
void res_connectors_put_config(struct call *call);
void res_connectors_patch_config(struct call *call);
void res_connectors_status(struct call *call);
void res_connectors_restart(struct call *call);
void res_connectors_pause(struct call *call);
void res_connectors_resume(struct call *call);
void res_connectors_stop(struct call *call);
void res_loggers_list(struct call *call);
void res_loggers_get(struct call *call);
void res_loggers_set(struct call *call);
void res_tasks_list(struct call *call);
void res_tasks_status(struct call *call);
void res_tasks_restart(struct call *call);
void res_tasks_put(struct call *call);
void res_tasks_fence(struct call *call);
void res_offsets_read(struct call *call);
void res_offsets_alter(struct call *call);
void res_offsets_reset(struct call *call);
void res_topics_list(struct call *call);
void res_topics_reset(struct call *call);

#endif
