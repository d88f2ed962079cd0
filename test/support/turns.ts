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

/** What this thread works from now on, milliseconds of its own processor time: it waits for no other program in them. */
export function watchWork(): { ms(): number } {
  const before = process.threadCpuUsage();
  return {
    ms() {
      const { user, system } = process.threadCpuUsage(before);
      return Math.round((user + system) / 1_000);
    },
  };
}
