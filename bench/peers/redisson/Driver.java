// Driver for Redisson. usage: Driver PEER HOST:PORT MODE key=value... (see ../README.md)
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public final class Driver {
    // CLOCK_MONOTONIC, which System.nanoTime() is on Linux.
    static long mono() { return System.nanoTime(); }

    static RedissonClient client;
    static final Map<String, String> args = new HashMap<>();

    static long num(String name, long otherwise) {
        return args.containsKey(name) ? Long.parseLong(args.get(name)) : otherwise;
    }

    static void sleepTo(long atNs) throws InterruptedException {
        long left = atNs - mono();
        if (left > 0) TimeUnit.NANOSECONDS.sleep(left);
    }

    static double pct(long[] values, int n, double q) {
        long[] sorted = Arrays.copyOf(values, n);
        Arrays.sort(sorted);
        return n == 0 ? 0 : sorted[Math.min(n - 1, (int) (n * q))] / 1000.0;
    }

    static void w1(String key, long runNs) {
        long[] acquired = new long[1 << 20], released = new long[1 << 20];
        int n = 0;
        RLock lock = client.getLock(key);
        long start = mono();
        while (mono() - start < runNs) {
            long x = mono();
            lock.lock();
            long y = mono();
            lock.unlock();
            acquired[n] = y - x;
            released[n++] = mono() - y;
        }
        System.out.printf("{\"pairs_s\":%.1f,\"acq50\":%.1f,\"acq99\":%.1f,\"rel50\":%.1f,\"rel99\":%.1f}%n",
            n * 1e9 / (mono() - start), pct(acquired, n, .5), pct(acquired, n, .99),
            pct(released, n, .5), pct(released, n, .99));
    }

    interface Work { void run(int worker) throws Exception; }

    static void workers(int n, Work work) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            int worker = i;
            Thread thread = new Thread(() -> {
                try { work.run(worker); } catch (Exception e) { e.printStackTrace(); System.exit(1); }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) thread.join();
    }

    static void w2(String key, long runNs) throws Exception {
        int n = (int) num("workers", 64);
        long[] pairs = new long[n];
        long start = mono();
        workers(n, i -> {
            RLock lock = client.getLock(key + ":" + i);
            while (mono() - start < runNs) {
                lock.lock();
                lock.unlock();
                pairs[i]++;
            }
        });
        System.out.printf("{\"pairs_s\":%.1f}%n", Arrays.stream(pairs).sum() * 1e9 / (mono() - start));
    }

    static void w3(String key, long runNs, long t0) throws Exception {
        int n = (int) num("workers", 16);
        long[] grants = new long[n];
        List<long[]> all = new ArrayList<>();
        sleepTo(t0);
        workers(n, i -> {
            RLock lock = client.getLock(key);
            List<long[]> mine = new ArrayList<>();
            while (mono() < t0 + runNs) {
                long x = mono();
                lock.lock();
                long y = mono();
                mine.add(new long[] {(y - x) / 1000, y / 1000, i});
                if (y < t0 + runNs) grants[i]++;
                lock.unlock();
            }
            synchronized (all) { all.addAll(mine); }
        });
        System.out.printf("{\"grants\":%s,\"waits_us\":%s,\"t_us\":%s,\"who\":%s}%n", Arrays.toString(grants),
            column(all, 0), column(all, 1), column(all, 2));
    }

    static String column(List<long[]> rows, int i) {
        return rows.stream().map(row -> Long.toString(row[i])).collect(Collectors.joining(",", "[", "]"));
    }

    static void w4(String key, boolean hold, long t0) throws Exception {
        long reps = num("reps", 50), period = num("period", 600) * 1000000L;
        RLock lock = client.getLock(key);
        List<String> times = new ArrayList<>();
        for (int i = 0; i < reps; i++) {
            long base = t0 + i * period;
            sleepTo(hold ? base : base + (30 + ThreadLocalRandom.current().nextInt(100)) * 1000000L);
            lock.lock();
            if (hold) sleepTo(base + 200000000L);
            else times.add(Long.toString(mono()));
            lock.unlock();
            if (hold) times.add(Long.toString(mono()));
        }
        System.out.printf("{\"t\":[%s]}%n", String.join(",", times));
    }

    static long cpuNs() throws Exception {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime();
    }

    static void w5(String key, long runNs) throws Exception {
        int n = (int) num("n", 10000);
        long start = mono();
        List<RLock> locks = new ArrayList<>();
        for (int i = 0; i < n; i += 64) {
            List<java.util.concurrent.Future<?>> asked = new ArrayList<>();
            for (int j = i; j < Math.min(n, i + 64); j++) {
                RLock lock = client.getLock(key + ":" + j);
                locks.add(lock);
                asked.add(lock.lockAsync(1));
            }
            for (java.util.concurrent.Future<?> one : asked) one.get();
        }
        double acquireS = (mono() - start) / 1e9;
        System.out.println("HELD");
        long cpu = cpuNs(), from = mono();
        TimeUnit.NANOSECONDS.sleep(runNs);
        double cpuS = (cpuNs() - cpu) / 1e9, heldS = (mono() - from) / 1e9;
        System.out.println("DONE");
        int missed = 0;
        for (RLock lock : locks) if (!lock.isHeldByThread(1)) missed++;
        String rss = Files.readAllLines(Path.of("/proc/self/status")).stream()
            .filter(line -> line.startsWith("VmRSS")).findFirst().orElse("0").replaceAll("\\D", "");
        System.out.printf("{\"acq_s\":%.3f,\"cpu_s\":%.3f,\"hold_s\":%.3f,\"rss_kb\":%s,\"missed\":%d,"
            + "\"native\":true}%n", acquireS, cpuS, heldS, rss, missed);
    }

    public static void main(String[] argv) throws Exception {
        for (int i = 3; i < argv.length; i++) {
            String[] pair = argv[i].split("=", 2);
            args.put(pair[0], pair[1]);
        }
        Config config = new Config();
        config.setLockWatchdogTimeout(num("ttl", 10000));
        config.useSingleServer().setAddress("redis://" + argv[1]).setConnectionPoolSize(64)
            .setConnectionMinimumIdleSize(4);
        client = Redisson.create(config);
        String key = args.get("key");
        long runNs = num("ms", 3000) * 1000000L, t0 = num("t0", mono());
        RLock warm = client.getLock(key + ":warm");
        warm.lock();
        warm.unlock();
        switch (argv[2]) {
            case "w1": w1(key, runNs); break;
            case "w2": w2(key, runNs); break;
            case "w3": w3(key, runNs, t0); break;
            case "w4hold": w4(key, true, t0); break;
            case "w4wait": w4(key, false, t0); break;
            case "w5": w5(key, runNs); break;
            default: throw new IllegalArgumentException("no mode " + argv[2]);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
