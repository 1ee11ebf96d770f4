/* The help of each subcommand. Text only. */
#include "help_texts.h"

#include "text.h"

/* clang-format off */
const struct help_text help_texts[] = {
{ "", N_(
"pawl: a distributed lock whose life follows the work that it protects\n"
"\n"
"usage: pawl [OPTION...] COMMAND [ARG...]\n"
"\n"
"  run KEY -- CMD...     run CMD while holding the lock KEY\n"
"  ls [PATTERN]          the locks there are, longest held first\n"
"  show KEY              everything about one: holder, lease, queue\n"
"  watch [PATTERN]       the same, live\n"
"  doctor [KEY]          find out why a lock is stuck, sold twice, or never got\n"
"  break KEY             take a lock away from its holder\n"
"  acquire, release, hold    for scripts that cannot wrap what they protect\n"
"  lease PATTERN         recommend a lease and a maximum hold\n"
"  acl                   the rights that pawl needs, as an ACL line\n"
"  verify KEY, bench     does it exclude here? how fast is it here?\n"
"\n"
"Where the store is: --url URL, PAWL_URL, or 'url = ...' in ~/.config/pawl/config\n"
"  redis://[user[:password]@]host[:port][/db], rediss://..., redis+unix:///path[?db=N]\n"
"More of the same for every command: --prefix P, --password-file F, --json, --quiet,\n"
"  --verbose; pawl COMMAND --help has examples; pawl(1) has the exit codes.\n") },
{ "run", N_(
"usage: pawl run [OPTION...] KEY -- COMMAND [ARG...]\n"
"\n"
"Takes the lock KEY, runs COMMAND without a shell, and gives the lock back when COMMAND and all\n"
"that it started are gone. If the lock is lost, they are stopped before anybody else can get it.\n"
"\n"
"  --wait TIME|forever     how long to wait for the lock (default: forever); 0 or -n: one try\n"
"  --lease TIME            how long the lock survives a crash of this machine (30s)\n"
"  --max-hold TIME|none    stop COMMAND after this time (24h)\n"
"  --grace TIME            between TERM and KILL; at most a third of the lease (5s)\n"
"  --no-renew              the lease is the end: stop COMMAND before it\n"
"  --label TEXT            shown to whoever looks at the lock (default: the command's name)\n"
"  --on-busy fail|skip     busy at the end of the wait: code 246, or 0 without running COMMAND\n"
"  -E, --exit CODE         exit code for busy; NAME=CODE,... for others\n"
"  --keep-for-daemon       hold on for background processes (default: stop them);\n"
"                          --leftover stop|wait|leave says it in full\n"
"  --new-owner             do not re-enter the lock KEY of a pawl run around this one\n"
"  --with-parent           end when the process that started pawl ends\n"
"  --pass-url              leave the password in COMMAND's PAWL_URL\n"
"\n"
"COMMAND finds PAWL_KEY, PAWL_FENCE (the fencing token), PAWL_OWNER and PAWL_DEADLINE.\n"
"Exit code: COMMAND's own; 128+n by signal n; 126, 127 as in a shell; else usage 245, busy 246,\n"
"unreachable 247, denied 248, lost 249, max-hold 250, refused 251, unknown 252.\n"
"\n"
"  pawl run --on-busy skip --wait 0 nightly -- /usr/local/bin/backup --full\n"
"  pawl run --wait 30s --max-hold 10m \"order:42\" -- ./settle 42\n") },
{ "ls", N_(
"usage: pawl ls [OPTION...] [PATTERN]\n"
"\n"
"Lists locks, longest held first: holder, its count, held for, time left, waiters, state.\n"
"PATTERN is a glob (default *). Found by SCAN, so the server goes on serving. Locks of other\n"
"clients with the same layout (Redisson, the usual Lua recipes) are listed too.\n"
"\n"
"  --strings     also strings that expire: some of them may be locks of the SETNX kind\n"
"  --json        one array of objects\n"
"\n"
"  pawl ls\n"
"  pawl ls 'order:*'\n"
"  pawl ls --json | jq '.[] | select(.verdict != \"fine\")'\n") },
{ "show", N_(
"usage: pawl show [OPTION...] KEY\n"
"\n"
"Everything about one lock: owner, count, token, process, since when, until when, what is left of\n"
"its lease and whether its watchdog keeps up, and who waits for how long.\n"
"Exit code 1: nobody holds it.\n"
"\n"
"  pawl show order:42\n"
"  pawl show --json order:42\n") },
{ "break", N_(
"usage: pawl break [OPTION...] KEY\n"
"\n"
"Takes the lock KEY away from its holder. By default it is revoked: renewals are refused, the\n"
"holder stops its work, and the next waiter gets the lock when the lease ends. Only the grant\n"
"that was seen is taken away, never a newer one. Asks first; a line for the audit goes to stderr.\n"
"\n"
"  --token N     only if its token is N, as pawl show printed it\n"
"  --now         do not wait for the lease: the old holder may still be at work then\n"
"  --yes         do not ask; needed where stdin is no terminal\n"
"  --audit FILE  append the audit line (JSON) to FILE; or PAWL_AUDIT, or 'audit' in the config\n"
"\n"
"Exit code 1: free, another token, or the answer was no.\n"
"\n"
"  pawl break order:42\n"
"  pawl break --token 1795968566096149 --yes order:42\n") },
{ "acquire", N_(
"usage: pawl acquire [OPTION...] KEY\n"
"\n"
"Takes the lock KEY and ends. Prints its owner, with which pawl release gives it back. Nobody\n"
"renews it: the lease is its end, unless pawl hold keeps it. Prefer pawl run where you can.\n"
"\n"
"  --wait TIME|forever   how long to wait (default: forever)\n"
"  --lease TIME          how long it lasts (30s)\n"
"  --label TEXT          shown to whoever looks at the lock\n"
"  --owner OWNER         enter again what this owner holds\n"
"\n"
"  owner=$(pawl acquire --lease 5m --wait 1m nightly) || exit\n"
"  ...\n"
"  pawl release nightly \"$owner\"\n") },
{ "release", N_(
"usage: pawl release [OPTION...] KEY OWNER\n"
"\n"
"Gives back the lock KEY, however often OWNER (as pawl acquire printed it) holds it.\n"
"Exit code 1: it is free, or somebody else's; nothing was done then.\n"
"\n"
"  pawl release nightly \"$owner\"\n") },
{ "hold", N_(
"usage: pawl hold --for-pid PID [OPTION...] KEY\n"
"\n"
"Takes the lock KEY, or enters again with --owner, and keeps it renewed as long as the process\n"
"PID lives; then gives it back. The process is not stopped if the lock is lost: pawl run does.\n"
"\n"
"  --for-pid PID         the process\n"
"  --owner OWNER         as pawl acquire printed it\n"
"  --background          return when the lock is held; prints the owner\n"
"  --wait, --lease, --label    as for pawl acquire\n"
"  --max-hold TIME|none  the end in any case (24h)\n"
"\n"
"  pawl hold --for-pid $$ --background nightly || exit\n") },
};
/* clang-format on */

const size_t n_help_texts = sizeof help_texts / sizeof help_texts[0];
