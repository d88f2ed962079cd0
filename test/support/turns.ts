/** Watches how long this thread works before the event loop goes on, milliseconds of its own work: a busy machine makes it no longer. */
export function watchTurns(): { longest(): number } {
  let longest = 0;
  let isOver = false;
  let before = process.threadCpuUsage();
  const look = () => {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    longest = Math.max(longest, (user + system) / 1_000);
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  return {
    longest() {
      isOver = true;
      return Math.round(longest);
    },
  };
}
