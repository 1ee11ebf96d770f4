/* The queue: a lock that is handed over by its releaser to waiters who may miss the message, be
 * canceled, or be slow. Two waiters, one holder at the start.
 *
 * Time is counted in ticks; between two ticks everything may happen in any order. A claim lasts
 * CLAIM ticks at the server. Labels in brackets name the places in the scripts and in core/wait.c.
 *
 * Safety (always): who believes holds; a canceled waiter is never left owning the lock by a grant
 * that came after its cancel was answered.
 * Liveness (-DLIVE): a waiter that stays is served in the end although messages are lost.
 *
 * Broken variants that must fail:
 *   -DARRIVAL     the lease of a granted waiter is counted from the arrival of the message
 *   -DNO_RECHECK  waiters rely on the message alone (fails only with -DLIVE)
 *   -DTWO_STEP_CANCEL  leaving the queue and giving back a grant are two requests
 *   -DSAME_ID     a waiter whose claim ended joins again under its old hold id: the message of the
 *                 ended claim, still on its way, is then dated from the new place in the queue
 */
#ifndef CLAIM
#define CLAIM 3
#endif
#ifndef TMAX
#define TMAX 9
#endif
#define NOBODY 0
#define HOLDER 1
#define N 2                     /* waiters 2 and 3 */

byte now;
byte owner = HOLDER;            /* at the server */
byte until = 200;               /* end of the owner's lease; 200: renewed, does not end */
byte queue[2];                  /* first come first */
bit message[4];                 /* a grant on its way to this waiter */
bit canceled[4];                /* its cancel was answered */
byte believes[4];               /* the waiter thinks it holds until then */
byte base[4];                   /* send time of the last answer that named it as queued */
byte served;                    /* bit per waiter */

inline hand_over() {            /* [release: hand over] */
    if
    :: queue[0] != NOBODY ->
        owner = queue[0];
        queue[0] = queue[1];
        queue[1] = NOBODY;
        until = now + CLAIM;
        if
        :: message[owner] = 1
        :: skip                 /* lost */
        fi
    :: else ->
        owner = NOBODY
    fi
}

inline leave(me) {              /* [cancel: leave the queue] */
    if
    :: queue[0] == me -> queue[0] = queue[1]; queue[1] = NOBODY
    :: queue[0] != me && queue[1] == me -> queue[1] = NOBODY
    :: else
    fi
}

inline join(me) {               /* [acquire: join] */
    if
    :: queue[0] == NOBODY -> queue[0] = me
    :: queue[0] != NOBODY && queue[0] != me && queue[1] == NOBODY -> queue[1] = me
    :: else
    fi
}

#define queued(me) (queue[0] == me || queue[1] == me)

active proctype holder() {
    atomic { owner == HOLDER -> hand_over() }
}

#ifndef LIVE
/* The server's clock. A claim that was not confirmed ends; nobody is woken by that. */
active proctype clock() {
    do
    :: atomic {
        now < TMAX ->
        now++;
        if
        :: owner >= 2 && now >= until -> owner = NOBODY
        :: else
        fi;
        assert(now >= believes[2] || owner == 2);
        assert(now >= believes[3] || owner == 3)
    }
    :: now == TMAX -> break
    od
}
#else
/* Without a clock: a claim may end whenever its waiter has not noticed it. */
active proctype lapse() {
end:
    do
    :: atomic { owner >= 2 && believes[owner] == 0 && !message[owner] -> owner = NOBODY }
    od
}
#endif

proctype waiter(byte me; bit may_cancel) {
    byte sent;

    sent = now;
    atomic { join(me); base[me] = sent }        /* [wait: queued] */
    do
    :: message[me] ->                           /* [wait: granted by message] */
        atomic {
            message[me] = 0;
#ifdef ARRIVAL
            believes[me] = now + CLAIM;
#elif defined(LIVE)
            if
            :: owner == me -> believes[me] = 1
            :: else                             /* late: the re-check decides */
            fi;
#else
            if
            :: now < base[me] + CLAIM -> believes[me] = base[me] + CLAIM
            :: else                             /* too late to believe: confirm first */
            fi;
#endif
            assert(now >= believes[me] || owner == me)
        }
        if
        :: believes[me] > now -> goto work
        :: else
        fi
#ifndef NO_RECHECK
    :: true ->                                  /* [re-check] */
        sent = now;
        atomic {
            if
            :: owner == NOBODY -> leave(me); owner = me; until = sent + CLAIM
            :: else
            fi;
            if
            :: owner == me ->                   /* [re-check: confirm] */
                until = now + CLAIM;
                believes[me] = sent + CLAIM
            :: owner != me && queued(me) ->
                base[me] = sent
            :: else ->                          /* gone: rejoin, under a new hold id */
#ifndef SAME_ID
                message[me] = 0;                /* so an old message does not match any more */
#endif
                join(me);
                base[me] = sent
            fi
        }
        if
        :: believes[me] > now -> goto work
        :: else
        fi
#endif
    :: may_cancel ->
#ifdef TWO_STEP_CANCEL
        if
        :: owner == me -> atomic { if :: owner == me -> hand_over() :: else fi }
        :: else -> leave(me)
        fi;
#else
        atomic {                                /* [cancel] */
            if
            :: owner == me -> hand_over()
            :: else -> leave(me)
            fi
        }
#endif
        atomic { canceled[me] = 1; assert(owner != me) }
        goto out
#ifndef LIVE
    :: now == TMAX -> goto out
#endif
    od;
work:
    atomic {                                    /* [release] */
        believes[me] = 0;
        served = served | (1 << me);
        if
        :: owner == me -> hand_over()
        :: else
        fi
    }
out:
    skip
}

init {
    atomic {
        run waiter(2, 0);
        run waiter(3, 1)
    }
}

#ifdef LIVE
ltl stays_is_served { <> (served & 4) }
#endif
