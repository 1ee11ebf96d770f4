/* Encrypted connections: the right server and no other, and words when the two sides do not speak
 * the same. */
#include "integration/harness.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/certs.h"

struct place {
    char folder[64];
    struct server *server;
    char crt[128];
    char key[128];
    char ca[128];
};

static void place_up(struct place *p, const char *cert, const char *config)
{
    struct server_options opts = { .config = config };
    char name[32];

    make_folder(p->folder, sizeof p->folder);
    certs_make(p->folder);
    snprintf(name, sizeof name, "%s.crt", cert);
    snprintf(p->crt, sizeof p->crt, "%s", certs_path(p->folder, name));
    snprintf(name, sizeof name, "%s.key", cert);
    snprintf(p->key, sizeof p->key, "%s", certs_path(p->folder, name));
    snprintf(p->ca, sizeof p->ca, "%s", certs_path(p->folder, "ca.crt"));
    opts.cert_file = p->crt;
    opts.key_file = p->key;
    opts.ca_file = p->ca;
    p->server = server_start(&opts);
}

static void place_down(struct place *p)
{
    server_free(p->server);
    remove_folder(p->folder);
}

static struct pawl_client_options trusting(const struct place *p)
{
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;

    opts.ca_file = p->ca;
    opts.connect_ms = slack_ms(600);
    return opts;
}

static int try_url(const char *url, const struct pawl_client_options *opts)
{
    struct pawl_client *client = open_only(url, opts);
    int64_t start_ms = now_ms();
    int rc = pawl_client_ready(client, slack_ms(700));

    assert_true(now_ms() - start_ms < slack_ms(1200));
    if (rc == 0)
        EXPECT_RESULT(give_back(take(client, "job", 1000, slack_ms(2000))), 0);
    else
        print_message("%s: %s\n", pawl_result_name(rc), pawl_error_detail());
    pawl_client_close(client);
    return rc;
}

static void lock_lives_over_tls(void **state)
{
    struct place p;
    struct pawl_client_options opts;
    struct pawl_client *client;
    struct pawl_lock *lock;

    (void)state;
    place_up(&p, "good", NULL);
    opts = trusting(&p);
    client = open_client(p.server->tcp_url, &opts);
    lock = take(client, "job", 900, 0);
    pause_ms(1200);
    EXPECT_RESULT(pawl_lock_check(lock), 0);
    EXPECT_RESULT(refuse(client, "job", 1000, 200), PAWL_TIMEOUT);
    EXPECT_RESULT(give_back(lock), 0);
    pawl_client_close(client);
    place_down(&p);
}

static void only_the_right_certificate_is_accepted(void **state)
{
    static const char *const certs[] = { "wrong", "expired", "early", "stranger" };

    (void)state;
    for (size_t i = 0; i < N_OF(certs); i++) {
        struct pawl_client_options opts;
        struct place p;

        place_up(&p, certs[i], NULL);
        opts = trusting(&p);
        EXPECT_RESULT(try_url(p.server->tcp_url, &opts), PAWL_ETLS);
        opts.ca_file = NULL; /* an authority that the system does not know */
        if (getenv("PAWL_SANITIZE") == NULL) /* reading the system's takes checkers seconds */
            EXPECT_RESULT(try_url(p.server->tcp_url, &opts), PAWL_ETLS);
        opts.flags = PAWL_TLS_INSECURE;
        EXPECT_RESULT(try_url(p.server->tcp_url, &opts), 0);
        place_down(&p);
    }
}

static void reason_is_in_the_detail(void **state)
{
    static const struct {
        const char *cert;
        const char *word;
    } rows[] = { { "wrong", "mismatch" }, { "expired", "expired" }, { "early", "not yet valid" } };

    (void)state;
    for (size_t i = 0; i < N_OF(rows); i++) {
        struct pawl_client_options opts;
        struct pawl_client *client;
        struct place p;

        place_up(&p, rows[i].cert, NULL);
        opts = trusting(&p);
        client = open_only(p.server->tcp_url, &opts);
        EXPECT_RESULT(pawl_client_ready(client, slack_ms(700)), PAWL_ETLS);
        if (strstr(pawl_error_detail(), rows[i].word) == NULL)
            fail_msg("'%s' does not say '%s'", pawl_error_detail(), rows[i].word);
        pawl_client_close(client);
        place_down(&p);
    }
}

static void address_must_be_in_the_certificate(void **state)
{
    struct pawl_client_options opts;
    char url[64];
    struct place p;

    (void)state;
    place_up(&p, "noip", NULL);
    opts = trusting(&p);
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d", p.server->port);
    EXPECT_RESULT(try_url(p.server->tcp_url, &opts), 0);
    EXPECT_RESULT(try_url(url, &opts), PAWL_ETLS);
    opts.server_name = "localhost"; /* said by the user */
    EXPECT_RESULT(try_url(url, &opts), 0);
    opts.server_name = "elsewhere.example";
    EXPECT_RESULT(try_url(url, &opts), PAWL_ETLS);
    place_down(&p);
}

static void client_certificate_is_shown(void **state)
{
    struct pawl_client_options opts;
    char cert[128];
    char key[128];
    struct place p;

    (void)state;
    place_up(&p, "good", "tls-auth-clients yes");
    opts = trusting(&p);
    assert_int_not_equal(try_url(p.server->tcp_url, &opts), 0);
    snprintf(cert, sizeof cert, "%s", certs_path(p.folder, "client.crt"));
    snprintf(key, sizeof key, "%s", certs_path(p.folder, "client.key"));
    opts.cert_file = cert;
    opts.key_file = key;
    EXPECT_RESULT(try_url(p.server->tcp_url, &opts), 0);
    place_down(&p);
}

static void insecure_is_logged(void **state)
{
    static struct book book;
    struct pawl_client_options opts;
    struct pawl_client *client;
    struct place p;

    (void)state;
    place_up(&p, "wrong", NULL);
    book_init(&book);
    opts = trusting(&p);
    opts.flags = PAWL_TLS_INSECURE;
    opts.log = book_write;
    opts.log_arg = &book;
    client = open_client(p.server->tcp_url, &opts);
    EVENTUALLY(2000, book_has(&book, "W "));
    assert_true(book_has(&book, "certificate"));
    pawl_client_close(client);
    place_down(&p);
}

/* The certificate changes on disk; a lock outlives the change. */
static void rotated_authority_is_used_from_the_next_connection(void **state)
{
    struct pawl_client_options opts;
    struct pawl_client *client;
    struct pawl_lock *lock;
    struct place p;
    char *other;

    (void)state;
    place_up(&p, "good", NULL);
    opts = trusting(&p);
    opts.name = "rotated-tls";
    client = open_client(p.server->tcp_url, &opts);
    lock = take(client, "job", 6000, 0);
    server_do(p.server, "CONFIG SET tls-cert-file %s tls-key-file %s",
              certs_path(p.folder, "stranger.crt"), certs_path(p.folder, "stranger.key"));
    other = read_file(certs_path(p.folder, "other-ca.crt"), NULL);
    write_file(p.ca, other);
    free(other);
    assert_true(server_drop_clients(p.server, "rotated-tls") > 0);
    EVENTUALLY(5000, pawl_client_ready(client, 0) == 0);
    EXPECT_RESULT(pawl_lock_check(lock), 0);
    EXPECT_RESULT(give_back(lock), 0);
    assert_false(exists(p.server, "job"));
    pawl_client_close(client);
    place_down(&p);
}

/* ---- the two do not speak the same ---- */

static void tls_to_a_plain_port_is_told(void **state)
{
    struct server *s = *state;
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    char url[64];

    opts.connect_ms = slack_ms(600);
    snprintf(url, sizeof url, "rediss://localhost:%d", s->port);
    EXPECT_RESULT(try_url(url, &opts), PAWL_ETLS);
}

static void plain_to_a_tls_port_is_told(void **state)
{
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    struct pawl_client *client;
    char url[64];
    struct place p;
    int rc;

    (void)state;
    place_up(&p, "good", NULL);
    snprintf(url, sizeof url, "redis://localhost:%d", p.server->port);
    client = open_only(url, &opts);
    rc = pawl_client_ready(client, slack_ms(700));
    assert_int_equal(pawl_result_class(rc), PAWL_CLASS_UNAVAILABLE);
    print_message("%s: %s\n", pawl_result_name(rc), pawl_error_detail());
    assert_non_null(strstr(pawl_error_detail(), "TLS"));
    pawl_client_close(client);
    place_down(&p);
}

static void silent_port_ends_within_the_limit(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    struct pawl_client_options opts = PAWL_CLIENT_OPTIONS_INIT;
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pawl_client *client;
    int64_t start_ms;
    char url[64];

    (void)state;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 4), 0);
    getsockname(fd, (struct sockaddr *)&address, &len);
    opts.connect_ms = slack_ms(500); /* the system's authorities are read within it */
    snprintf(url, sizeof url, "rediss://localhost:%d", ntohs(address.sin_port));
    client = open_only(url, &opts);
    start_ms = now_ms();
    assert_true(refuse(client, "job", 1000, slack_ms(1000)) < 0);
    assert_in_range(now_ms() - start_ms, 0, slack_ms(1300));
    assert_non_null(strstr(pawl_error_detail(), "TLS"));
    pawl_client_close(client);
    close(fd);
}

/* A program may exit while its client is in the middle of a handshake. */
static void exit_with_an_open_client_is_harmless(void **state)
{
    struct server *s = *state;
    struct relay *relay = relay_start(s->socket);
    char url[64];

    relay_ignore(relay, true);
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d", relay_port(relay));
    for (int i = 0; i < 60; i++) {
        struct child *holder = holder_start(url, NULL);

        child_say(holder, "exit %d\n", i % 30);
        assert_int_equal(child_end(holder, 5000), 0);
        child_free(holder);
    }
    relay_free(relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock_lives_over_tls),
        cmocka_unit_test(only_the_right_certificate_is_accepted),
        cmocka_unit_test(reason_is_in_the_detail),
        cmocka_unit_test(address_must_be_in_the_certificate),
        cmocka_unit_test(client_certificate_is_shown),
        cmocka_unit_test(insecure_is_logged),
        cmocka_unit_test(rotated_authority_is_used_from_the_next_connection),
        SERVED(exit_with_an_open_client_is_harmless),
        SERVED(tls_to_a_plain_port_is_told),
        cmocka_unit_test(plain_to_a_tls_port_is_told),
        cmocka_unit_test(silent_port_ends_within_the_limit),
    };

    return RUN_SERVED(tests);
}
