import type { Bus } from '../../../bus/bus.ts';
import { ALERT_RAISE, type AlertRaised, alertRaised } from '../../contracts/alerts.ts';
import { EFFECT_DONE, type EffectHandler, type EffectRegistration } from '../../kernel/actors/effect.ts';
import { type Exchanges, HTTP_REPLY, type Reply } from '../http/exchanges.ts';

/**
 * The effects that every machine may ask for without a plugin: an answer to the HTTP request of a story, and an
 * alert. Both may run twice after a crash; an answer that nobody waits for any more is `gone`.
 */
export function builtinEffects(exchanges: Exchanges, bus: Bus): EffectRegistration[] {
  const reply: EffectHandler<Reply & { readonly to?: string }> = ({ to, ...answer }, { correlation }) => {
    const heard = exchanges.settle(to ?? correlation, answer);
    return { type: EFFECT_DONE, effect: HTTP_REPLY, ...(!heard && { gone: true }) };
  };
  const alert: EffectHandler<AlertRaised> = (raised, { correlation, cause }) => {
    bus.publish(alertRaised, raised, { correlation, cause });
  };
  return [
    { type: HTTP_REPLY, onRecovery: 'retry', handler: reply },
    { type: ALERT_RAISE, onRecovery: 'retry', handler: alert, adapter: 'alerts' },
  ];
}
