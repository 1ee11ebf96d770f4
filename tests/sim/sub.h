/* What the stand-ins for parts of the library offer to the rest of the simulator. */
#ifndef SIM_SUB_H
#define SIM_SUB_H

struct pawli_loop;

/* One turn now; asks for the next. */
void sim_loop_turn(struct pawli_loop *loop);

struct pawli_notifier;

/* Run the event callbacks that are due. */
void sim_notifier_run(struct pawli_notifier *n);

#endif
