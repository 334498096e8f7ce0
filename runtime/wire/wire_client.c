/* SPDX-License-Identifier: Apache-2.0 */
/* Some broker of the cluster to ask, and each one by its id.
 *
 * One route leads to any broker: the book (wire_book.c) says which address is next. Once it stands,
 * Metadata without topics is asked for: cluster id, and the brokers there are now, so that the
 * client lives on when all of bootstrap.servers are gone. Routes to brokers by id are made when
 * first asked for, and look their address up in the book, or have the metadata asked for again.
 * Used by coordinator.c and wire_call.c, on the loop's thread. */
#include "wire_client_private.h"
#include "wire_private.h"
#include "wire_route.h"

#include "base/clock.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

#define NODES_MAX 256 /* routes by id */

struct node {
    struct wire_client *client;
    int32_t id;
    struct wire_route *route;
    struct loop_timer timer;
    char *host; /* where the route leads or led */
    uint16_t port;
};

struct wire_client {
    struct loop *loop;
    const struct wire_conf *conf;
    struct wire_book book;
    struct node any; /* id -1 */
    struct node **nodes;
    size_t node_count;
    bool asked; /* metadata is asked for */
    char *cluster_id;
};

static void seek_again(void *arg);

/* --- metadata --------------------------------------------------------------------------------- */

static void learn(struct wire_client *client, const struct answer_metadata *m)
{
    for (size_t i = 0; i < m->broker_count; i++) {
        struct wire_book_entry *old = wire_book_find(&client->book, m->brokers[i].id);
        struct wire_book_entry *entry;

        if (old != NULL)
            old->id = -1; /* it may have moved */
        entry = wire_book_add(&client->book, m->brokers[i].host, (uint16_t)m->brokers[i].port);
        if (entry != NULL) {
            entry->id = m->brokers[i].id;
            entry->learnt = true;
        }
    }
    if (m->broker_count > 0)
        wire_book_sweep(&client->book);
    if (client->cluster_id == NULL && m->cluster_id != NULL)
        client->cluster_id = strdup(m->cluster_id);
}

static void on_metadata(void *arg, const struct answer *answer, const struct mr_error *err)
{
    struct wire_client *client = arg;

    client->asked = false;
    if (err != NULL)
        return;
    learn(client, &answer->metadata);
    for (size_t i = 0; i < client->node_count; i++)
        if (wire_route_waiting(client->nodes[i]->route) && client->nodes[i]->timer.slot == 0)
            loop_timer_start(client->loop, &client->nodes[i]->timer, 0, seek_again,
                             client->nodes[i]);
}

static void ask_metadata(struct wire_client *client)
{
    struct request request = {.api = REQUEST_METADATA};

    if (!client->asked &&
        wire_route_call(client->any.route, &request, client->conf->request_timeout_ms, on_metadata,
                        client, NULL) == 0)
        client->asked = true;
}

/* --- routes ----------------------------------------------------------------------------------- */

static void go(struct node *node, const struct wire_book_entry *entry)
{
    char *host = text_dup(entry->host);

    free(node->host);
    node->host = host;
    node->port = entry->port;
    wire_route_found(node->route, &(struct broker_conn_to){.host = host, .port = entry->port});
}

static void unknown_broker(struct node *node)
{
    struct mr_error err = {0};

    mr_fail(&err, MR_ERR_IO, "the cluster does not name a broker %d", node->id);
    wire_route_missing(node->route, &err);
}

static void seek(void *owner)
{
    struct node *node = owner;
    struct wire_client *client = node->client;
    struct wire_book_entry *entry;
    int64_t wait_ms = 0;

    if (node->timer.slot != 0)
        return;
    if (node->id >= 0)
        entry = wire_book_find(&client->book, node->id);
    else
        entry = wire_book_pick(&client->book, clock_ms());
    if (entry != NULL)
        wait_ms = wire_book_wait(&client->book, entry->host, entry->port, clock_ms());
    if (entry != NULL && wait_ms == 0) {
        go(node, entry);
        return;
    }
    if (entry == NULL) {
        unknown_broker(node);
        ask_metadata(client);
        wait_ms = client->conf->retry_backoff_ms > 0 ? client->conf->retry_backoff_ms : 1;
    }
    loop_timer_start(client->loop, &node->timer, wait_ms, seek_again, node);
}

static void seek_again(void *arg)
{
    struct node *node = arg;

    if (wire_route_waiting(node->route))
        seek(node);
}

static void up(void *owner)
{
    struct node *node = owner;

    wire_book_worked(&node->client->book, node->host, node->port);
    if (node->id < 0)
        ask_metadata(node->client);
}

/* A broker that is asked for by id and does not answer may have moved. */
static void down(void *owner, bool was_up, const struct mr_error *err)
{
    struct node *node = owner;

    (void)err;
    wire_book_failed(&node->client->book, node->host, node->port, clock_ms());
    if (node->id >= 0 && !was_up)
        ask_metadata(node->client);
}

static void node_init(struct node *node, struct wire_client *client, int32_t id)
{
    static const struct wire_route_ops ops = {.seek = seek, .up = up, .down = down};

    *node = (struct node){.client = client, .id = id};
    node->route = wire_route_new(client->loop, client->conf, true, &ops, node);
}

static void node_deinit(struct node *node)
{
    loop_timer_cancel(&node->timer);
    wire_route_free(&node->route);
    loop_timer_cancel(&node->timer);
    free(node->host);
}

static struct node *find_node(struct wire_client *client, int32_t id)
{
    struct node **grown;

    for (size_t i = 0; i < client->node_count; i++)
        if (client->nodes[i]->id == id)
            return client->nodes[i];
    if (id < 0 || client->node_count == NODES_MAX)
        return NULL;
    grown = realloc(client->nodes, (client->node_count + 1) * sizeof(struct node *));
    mr_assert(grown != NULL);
    client->nodes = grown;
    grown[client->node_count] = malloc(sizeof(struct node));
    mr_assert(grown[client->node_count] != NULL);
    node_init(grown[client->node_count], client, id);
    return grown[client->node_count++];
}

/* --- calls and life --------------------------------------------------------------------------- */

int wire_client_call(struct wire_client *client, const struct request *request, int64_t timeout_ms,
                     answer_fn fn, void *arg, struct mr_error *err)
{
    loop_assert_owner(client->loop);
    return wire_route_call(client->any.route, request, timeout_ms, fn, arg, err);
}

int wire_client_call_broker(struct wire_client *client, int32_t broker,
                            const struct request *request, int64_t timeout_ms, answer_fn fn,
                            void *arg, struct mr_error *err)
{
    struct node *node = find_node(client, broker);

    loop_assert_owner(client->loop);
    if (node == NULL)
        return mr_fail(err, MR_ERR_FULL, "there can't be a connection to broker %d", broker);
    return wire_route_call(node->route, request, timeout_ms, fn, arg, err);
}

const char *wire_client_cluster_id(const struct wire_client *client)
{
    return client->cluster_id;
}

struct loop *wire_client_loop(const struct wire_client *client)
{
    return client->loop;
}

const struct wire_conf *wire_client_conf(const struct wire_client *client)
{
    return client->conf;
}

const struct mr_error *wire_client_trouble(const struct wire_client *client)
{
    return wire_route_trouble(client->any.route);
}

struct wire_book *wire_client_book(struct wire_client *client)
{
    return &client->book;
}

struct wire_client *wire_client_new(struct loop *loop, const struct wire_conf *conf,
                                    struct mr_error *err)
{
    struct wire_client *client = calloc(1, sizeof(*client));
    uint64_t seed = (uint64_t)clock_wall_ms();

    if (client == NULL) {
        mr_fail(err, MR_ERR_NOMEM, "out of memory");
        return NULL;
    }
    client->loop = loop;
    client->conf = conf;
    RAND_bytes((unsigned char *)&seed, sizeof(seed));
    wire_book_init(&client->book, conf->reconnect_backoff_ms, conf->reconnect_backoff_max_ms, seed);
    for (size_t i = 0; i < conf->bootstrap_count; i++)
        wire_book_add(&client->book, conf->bootstrap[i].host, conf->bootstrap[i].port)->seed = true;
    node_init(&client->any, client, -1);
    return client;
}

void wire_client_free(struct wire_client **cp)
{
    struct wire_client *client = *cp;

    *cp = NULL;
    if (client == NULL)
        return;
    for (size_t i = 0; i < client->node_count; i++) {
        node_deinit(client->nodes[i]);
        free(client->nodes[i]);
    }
    node_deinit(&client->any);
    free(client->nodes);
    free(client->cluster_id);
    wire_book_deinit(&client->book);
    free(client);
}
