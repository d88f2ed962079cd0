import { useState } from 'preact/hooks';
import { ApiError, post } from '../api.ts';
import { address, params } from '../location.ts';
import { Problem } from '../parts/states.tsx';
import { brief } from '../text.tsx';

/** A decision that comes out otherwise. */
interface Difference {
  readonly seq: number;
  readonly actor: string;
  readonly text: string;
  readonly expected?: unknown;
  readonly got?: unknown;
}

interface Outcome {
  readonly differences: readonly Difference[];
  /** What can no longer be trusted, and why. */
  readonly limits: readonly string[];
}

/** Drop or alter a record, and see which decisions would have been others. Nothing is carried out. */
export function WhatIfPage() {
  const [drop, setDrop] = useState(params.value.get('drop') ?? '');
  const [seq, setSeq] = useState('');
  const [event, setEvent] = useState('');
  const [outcome, setOutcome] = useState<Outcome | undefined>(undefined);
  const [error, setError] = useState<ApiError | undefined>(undefined);
  const [running, setRunning] = useState(false);
  const run = async () => {
    setRunning(true);
    setError(undefined);
    try {
      const dropped = drop
        .split(/[\s,]+/)
        .filter(Boolean)
        .map(Number);
      const alter = seq === '' ? [] : [{ seq: Number(seq), event: JSON.parse(event) as unknown }];
      setOutcome(await post<Outcome>('/api/what-if', { drop: dropped, alter }));
    } catch (problem) {
      setError(
        problem instanceof ApiError
          ? problem
          : new ApiError(0, 'json', 'The event is no JSON object.', 'Write it as {"type": "…", …}.'),
      );
    } finally {
      setRunning(false);
    }
  };
  return (
    <>
      <h1>What if</h1>
      <p class="quiet">
        The log is replayed with your change in a sandbox. No effect is carried out, and nothing is recorded.
      </p>
      <form
        class="card what-if"
        onSubmit={(submitted) => {
          submitted.preventDefault();
          void run();
        }}
      >
        <label>
          Records that did not happen
          <input
            value={drop}
            placeholder="e.g. 1042, 1043"
            onInput={(typed) => setDrop(typed.currentTarget.value)}
          />
        </label>
        <label>
          A record that was another
          <input
            value={seq}
            placeholder="its number"
            inputMode="numeric"
            onInput={(typed) => setSeq(typed.currentTarget.value)}
          />
        </label>
        <label>
          Its event
          <textarea
            rows={4}
            value={event}
            placeholder='{"type": "LOOKED", "found": false}'
            onInput={(typed) => setEvent(typed.currentTarget.value)}
          />
        </label>
        <button type="submit" disabled={running || (drop === '' && seq === '')}>
          {running ? 'Replaying …' : 'Replay'}
        </button>
      </form>
      {error && <Problem error={error} />}
      {outcome && <Differences outcome={outcome} />}
    </>
  );
}

function Differences({ outcome: { differences, limits } }: { outcome: Outcome }) {
  return (
    <section aria-live="polite">
      <h2>
        {differences.length === 0
          ? 'No decision would have been another'
          : 'Decisions that would have been others'}
      </h2>
      {differences.length > 0 && (
        <table class="changes">
          <thead>
            <tr>
              <th scope="col">record</th>
              <th scope="col">as it was</th>
              <th scope="col">as it would have been</th>
            </tr>
          </thead>
          <tbody>
            {differences.map(({ seq, actor, text, expected, got }) => (
              <tr key={`${seq} ${actor}`}>
                <th scope="row">
                  <a href={address(`/records/${seq}`, { at: seq })}>{seq}</a> {actor}
                  <span class="quiet"> {text}</span>
                </th>
                <td>
                  <code>{brief(expected, 300)}</code>
                </td>
                <td>
                  <code>{brief(got, 300)}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {limits.length > 0 && (
        <>
          <h3>What can no longer be trusted</h3>
          <ul>
            {limits.map((limit) => (
              <li key={limit}>{limit}</li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
