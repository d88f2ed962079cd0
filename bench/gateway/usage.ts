/** Answers the parent's question for CPU and memory, and ends with it. */
export function tellUsage(): void {
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuMs: (user + system) / 1_000, rssMb: process.memoryUsage.rss() / 2 ** 20 });
  });
  process.on('disconnect', () => process.exit());
}
