import { useState } from 'preact/hooks';
import type { WhatIfAnswer } from '../../api/types.ts';
import { ApiError, post } from '../api.ts';
import { Problem } from '../components/states.tsx';
import { address, params } from '../location.ts';
import { counted } from '../text.tsx';

/** Drop or alter a record, and see which decisions would have been others. Nothing is carried out. */
export function WhatIfPage() {
  const [drop, setDrop] = useState(params.value.get('drop') ?? '');
  const [seq, setSeq] = useState('');
  const [event, setEvent] = useState('');
  const [outcome, setOutcome] = useState<WhatIfAnswer | undefined>(undefined);
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
      setOutcome(await post<WhatIfAnswer>('/api/what-if', { drop: dropped, alter }));
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
          A record whose event is changed
          <input
            value={seq}
            placeholder="its number"
            inputMode="numeric"
            onInput={(typed) => setSeq(typed.currentTarget.value)}
          />
        </label>
        <label>
          Its changed fields, as JSON (null removes a field)
          <textarea
            rows={4}
            value={event}
            placeholder='{"found": false}'
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

function Differences({ outcome }: { outcome: WhatIfAnswer }) {
  const {
    unknown,
    differences,
    differing,
    decidedAgain,
    onlyContext,
    untrusted,
    untrustedTotal,
    open,
    absent,
  } = outcome;
  return (
    <section class="card" aria-live="polite">
      <h2>
        {differing === 0
          ? 'No decision would have been different'
          : `${counted(differing, 'decision')} would have been different`}
      </h2>
      <p class="quiet">
        {counted(decidedAgain, 'record')} decided again; in {onlyContext} more only the context differs.
      </p>
      {unknown.length > 0 && (
        <p class="problem">
          Nothing can be tried out on {unknown.join(', ')}: the{' '}
          {unknown.length === 1 ? 'machine is' : 'machines are'} not here. What{' '}
          {unknown.length === 1 ? 'it' : 'they'} decided was taken as it was recorded.
        </p>
      )}
      {absent.map(({ seq, field }) => (
        <p key={`${seq} ${field}`}>
          Record {seq} has no field <code>{field}</code>: perhaps it is misspelt.
        </p>
      ))}
      {differences.length > 0 && (
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">record</th>
                <th scope="col">as it was</th>
                <th scope="col">as it would have been</th>
              </tr>
            </thead>
            <tbody>
              {differences.map(({ seq, actor, event, kind, recorded, instead }) => (
                <tr key={`${seq} ${actor} ${event} ${kind}`}>
                  <th scope="row">
                    <a href={address(`/records/${seq}`, { at: seq })}>{seq}</a> {actor} {event}
                  </th>
                  <td>{recorded?.text ?? <span class="quiet">nothing</span>}</td>
                  <td>{instead?.text ?? <span class="quiet">nothing</span>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {open.length > 0 && (
        <>
          <h3>What would be waited for, and whose outcome the log cannot know</h3>
          <ul>
            {open.map(({ actor, type, timer }) => (
              <li key={`${actor} ${type}`}>
                {timer ? 'the timer' : 'the effect'} <code>{type}</code> of {actor}
              </li>
            ))}
          </ul>
        </>
      )}
      {untrusted.length > 0 && (
        <>
          <h3>What can no longer be trusted</h3>
          <ul>
            {untrusted.map(({ seq, actor, event, reason }) => (
              <li key={seq}>
                <a href={address(`/records/${seq}`, { at: seq })}>{seq}</a> {actor} {event}: {reason}
              </li>
            ))}
            {untrustedTotal > untrusted.length && <li>and {untrustedTotal - untrusted.length} more</li>}
          </ul>
        </>
      )}
    </section>
  );
}
