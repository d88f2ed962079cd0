import { useEffect, useState } from 'preact/hooks';
import { at } from '../location.ts';
import { duration, Time } from '../text.tsx';

/** How long it is until something ends; it goes down while now is shown. @param until epoch milliseconds */
export function Countdown({ until }: { until: number }) {
  const [now, setNow] = useState(Date.now());
  const isNow = at.value === undefined;
  useEffect(() => {
    if (!isNow) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [isNow]);
  return (
    <span class="quiet">
      {' '}
      until <Time ms={until} />
      {isNow && (until > now ? `, in ${duration(until - now)}` : ', which is over')}
    </span>
  );
}
