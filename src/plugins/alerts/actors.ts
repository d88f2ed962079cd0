/** The actors of alerts. */
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { alert } from '../../machines/alerts/alert.ts';
import { alertOutbox } from '../../machines/alerts/outbox.ts';
import { alertRule } from '../../machines/alerts/rule.ts';
import { alertSilences } from '../../machines/alerts/silences.ts';
import { alertsUnevaluated } from '../../machines/alerts/unevaluated.ts';
import {
  describeAlert,
  describeOutbox,
  describeRule,
  describeSilences,
  describeUnevaluated,
} from './words.ts';

/** One actor a rule; its key is the rule's name. */
export const ruleActor = defineActor({
  type: 'alerts.rule',
  machine: alertRule,
  version: 1,
  describe: describeRule,
});

/** One actor a condition; its key is the alert's name with the labels that tell conditions apart. */
export const alertActor = defineActor({
  type: 'alerts.alert',
  machine: alert,
  version: 1,
  describe: describeAlert,
});

/** One actor a receiver; its key is the receiver's name. */
export const outboxActor = defineActor({
  type: 'alerts.outbox',
  machine: alertOutbox,
  version: 1,
  describe: describeOutbox,
});

/** One actor for all silences. */
export const silencesActor = defineActor({
  type: 'alerts.silences',
  machine: alertSilences,
  version: 1,
  describe: describeSilences,
});
export const SILENCES_KEY = 'all';

/** One actor for all rules that cannot be evaluated. */
export const unevaluatedActor = defineActor({
  type: 'alerts.unevaluated',
  machine: alertsUnevaluated,
  version: 1,
  describe: describeUnevaluated,
});
export const UNEVALUATED_KEY = 'all';
