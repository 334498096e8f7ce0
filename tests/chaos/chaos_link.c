/* SPDX-License-Identifier: Apache-2.0 */
/* The bad wire: a thread that takes packets out of the TUN device of each end, and puts them into
 * the other's when their time has come, or never. What is lost is sent again by the kernels' own
 * TCP, as on a real wire. (A kernel that has netem would do the same; many have none.) */
#include "chaos/chaos_link.h"

#include "chaos/chaos.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NAME "wire"
#define DEVICE "/dev/net/tun"
#define OWN "/proc/thread-self/ns/net"
#define MASK "255.255.255.252"
#define PACKET_BYTES 1500
#define ENDS 2
#define WAITING_MAX 8192 /* packets on the wire; the devices keep, and lose, what is more */
#define TICK_MS 100      /* how late the end is noticed */

struct packet {
    int64_t due_us;
    int to;
    size_t len;
    unsigned char data[PACKET_BYTES];
};

struct chaos_link {
    int home; /* the network that the thread came from */
    int net[ENDS];
    int tun[ENDS];
    pthread_t thread;
    atomic_bool ending;
    pthread_mutex_t lock; /* of these */
    int ports[CHAOS_LINK_PORTS + 1];
    struct chaos_link_harm harm;
    struct chaos_link_counts counts;
    unsigned chance; /* the thread's, as what follows */
    struct packet *waiting[WAITING_MAX];
    int count;
};

/* --- two networks ----------------------------------------------------------------------------- */

static void enter(int net)
{
    if (setns(net, CLONE_NEWNET) != 0)
        fail_msg("can't change the network: %s", strerror(errno));
}

static void order(int fd, unsigned long what, const struct ifreq *request, const char *words)
{
    if (ioctl(fd, what, request) != 0)
        fail_msg("%s of %s: %s", words, request->ifr_name, strerror(errno));
}

static struct ifreq named(const char *name)
{
    struct ifreq request = {0};

    memcpy(request.ifr_name, name, strlen(name) + 1);
    return request;
}

static struct ifreq with_address(const char *name, const char *text)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    struct ifreq request = named(name);

    assert_int_equal(inet_pton(AF_INET, text, &addr.sin_addr), 1);
    memcpy(&request.ifr_addr, &addr, sizeof(addr));
    return request;
}

static void bring_up(int fd, const char *name)
{
    struct ifreq request = named(name);

    request.ifr_flags = IFF_UP | IFF_RUNNING;
    order(fd, SIOCSIFFLAGS, &request, "start");
}

/* Of the network that the thread is in; gives the end of the wire. */
static int open_end(const char *address)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int tun = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    struct ifreq request = named(NAME);

    assert_true(fd >= 0 && tun >= 0);
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    order(tun, TUNSETIFF, &request, "making");
    request = with_address(NAME, address);
    order(fd, SIOCSIFADDR, &request, "address");
    request = with_address(NAME, MASK);
    order(fd, SIOCSIFNETMASK, &request, "mask");
    bring_up(fd, NAME);
    bring_up(fd, "lo");
    close(fd);
    return tun;
}

static int open_own(void)
{
    return open(OWN, O_RDONLY | O_CLOEXEC);
}

/* --- packets ---------------------------------------------------------------------------------- */

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool is_one_of(const int *ports, int port)
{
    while (*ports != 0 && *ports != port)
        ports++;
    return *ports != 0;
}

/* TCP and UDP have their ports at the same place. */
static bool is_harmed(const struct chaos_link *link, const struct packet *p)
{
    size_t at = (size_t)(p->data[0] & 15) * 4;
    bool has_ports = p->data[9] == IPPROTO_TCP || p->data[9] == IPPROTO_UDP;

    return has_ports && p->len >= at + 4 &&
           (is_one_of(link->ports, p->data[at] << 8 | p->data[at + 1]) ||
            is_one_of(link->ports, p->data[at + 2] << 8 | p->data[at + 3]));
}

static int64_t chance_us(struct chaos_link *link, int ms)
{
    return rand_r(&link->chance) % (ms * 1000 + 1);
}

/* false: it is lost. */
static bool meets(struct chaos_link *link, struct packet *p)
{
    const struct chaos_link_harm *harm = &link->harm;

    p->due_us = now_us();
    if (!is_harmed(link, p))
        return true;
    link->counts.packets++;
    if (rand_r(&link->chance) % 100 < harm->lost_percent) {
        link->counts.lost++;
        return false;
    }
    p->due_us += (harm->ms - harm->jitter_ms) * 1000 + chance_us(link, harm->jitter_ms * 2);
    return true;
}

/* Only IPv4 is spoken here. */
static struct packet *take(int tun)
{
    struct packet *p = malloc(sizeof(*p));
    ssize_t n = p == NULL ? -1 : read(tun, p->data, sizeof(p->data));

    if (n >= 20 && p->data[0] >> 4 == 4) {
        p->len = (size_t)n;
        return p;
    }
    free(p);
    return NULL;
}

static void receive(struct chaos_link *link, int from)
{
    struct packet *p;

    while (link->count < WAITING_MAX && (p = take(link->tun[from])) != NULL) {
        p->to = from == CHAOS_HERE ? CHAOS_THERE : CHAOS_HERE;
        if (meets(link, p))
            link->waiting[link->count++] = p;
        else
            free(p);
    }
}

/* -1: none waits. */
static int earliest(const struct chaos_link *link)
{
    int best = -1;

    for (int i = 0; i < link->count; i++)
        if (best < 0 || link->waiting[i]->due_us < link->waiting[best]->due_us)
            best = i;
    return best;
}

static void deliver(struct chaos_link *link, int at)
{
    struct packet *p = link->waiting[at];

    if (write(link->tun[p->to], p->data, p->len) < 0)
        link->counts.lost++;
    free(p);
    link->count--;
    memmove(&link->waiting[at], &link->waiting[at + 1],
            sizeof(p) * (size_t)(link->count - at)); /* those due at one time stay in order */
}

/* Gives ms until the next is due. */
static int serve(struct chaos_link *link)
{
    int at;

    receive(link, CHAOS_HERE);
    receive(link, CHAOS_THERE);
    while ((at = earliest(link)) >= 0) {
        int64_t left_us = link->waiting[at]->due_us - now_us();

        if (left_us > 0)
            return left_us / 1000 < TICK_MS ? (int)(left_us / 1000) + 1 : TICK_MS;
        deliver(link, at);
    }
    return TICK_MS;
}

static void *run(void *arg)
{
    struct chaos_link *link = arg;
    struct pollfd fds[ENDS] = {{link->tun[CHAOS_HERE], POLLIN, 0},
                               {link->tun[CHAOS_THERE], POLLIN, 0}};

    while (!atomic_load(&link->ending)) {
        int wait_ms;

        pthread_mutex_lock(&link->lock);
        wait_ms = serve(link);
        pthread_mutex_unlock(&link->lock);
        poll(fds, ENDS, wait_ms);
    }
    return NULL;
}

/* --- commands --------------------------------------------------------------------------------- */

const char *chaos_link_lacks(void)
{
    int home = open_own(), tun = open(DEVICE, O_RDWR | O_CLOEXEC);
    const char *lacks = NULL;

    if (tun < 0)
        lacks = scratch_text("%s: %s", DEVICE, strerror(errno));
    else if (unshare(CLONE_NEWNET) != 0)
        lacks = scratch_text("network namespaces take root: %s", strerror(errno));
    else
        enter(home);
    close(tun);
    close(home);
    return lacks;
}

static void end(void *arg)
{
    struct chaos_link *link = arg;

    atomic_store(&link->ending, true);
    pthread_join(link->thread, NULL);
    enter(link->home);
    close(link->home);
    for (int i = 0; i < ENDS; i++) {
        close(link->net[i]);
        close(link->tun[i]);
    }
    while (link->count > 0)
        free(link->waiting[--link->count]);
    pthread_mutex_destroy(&link->lock);
    free(link);
}

struct chaos_link *chaos_link_new(void)
{
    static const char *const addresses[] = {CHAOS_LINK_HERE, CHAOS_LINK_THERE};
    struct chaos_link *link = calloc(1, sizeof(*link));

    assert_non_null(link);
    link->home = open_own();
    link->chance = chaos_seed();
    for (int i = 0; i < ENDS; i++) {
        assert_int_equal(unshare(CLONE_NEWNET), 0);
        link->net[i] = open_own();
        link->tun[i] = open_end(addresses[i]);
    }
    enter(link->net[CHAOS_HERE]);
    pthread_mutex_init(&link->lock, NULL);
    assert_int_equal(pthread_create(&link->thread, NULL, run, link), 0);
    scratch_at_end(end, link);
    return link;
}

void chaos_link_go(const struct chaos_link *link, enum chaos_end end)
{
    enter(link->net[end]);
}

void chaos_link_set(struct chaos_link *link, const int *ports, struct chaos_link_harm harm)
{
    int count = 0;

    pthread_mutex_lock(&link->lock);
    while (ports[count] != 0) {
        assert_true(count < CHAOS_LINK_PORTS);
        link->ports[count] = ports[count];
        count++;
    }
    link->ports[count] = 0;
    link->harm = harm;
    pthread_mutex_unlock(&link->lock);
}

struct chaos_link_counts chaos_link_counts(struct chaos_link *link)
{
    struct chaos_link_counts counts;

    pthread_mutex_lock(&link->lock);
    counts = link->counts;
    pthread_mutex_unlock(&link->lock);
    return counts;
}
