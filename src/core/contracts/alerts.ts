import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import { defineContributionPoint } from './token.ts';

/** What a rule measured, as its receivers see it. */
const measured = z.object({
  title: z.string(),
  /** Undefined when there was no data, which is not zero. */
  value: z.number().optional(),
  /** e.g. `above 0` */
  threshold: z.string(),
  /** e.g. `1d` */
  window: z.string(),
  /** Hosts and instances of what was measured. */
  places: z.array(z.string()).readonly().optional(),
  /** What a person does first. */
  firstStep: z.string().optional(),
  /** URL of the page that says what to do. */
  runbook: z.string().optional(),
});

/** The effect by which a machine notifies a person. */
export const ALERT_RAISE = 'alerts.raise';

const alert = z.object({
  /** Stable id of the condition, e.g. `reconciler.leg.gave_up`. */
  name: z.string(),
  severity: z.enum(['info', 'warning', 'critical']),
  /** One sentence for the operator, without secrets. */
  text: z.string(),
  /** `state` among them says `firing` or `resolved` of a condition that lasts; without it this is one event. */
  labels: z.record(z.string(), z.string()),
  /** What the rule measured, where a rule raised it. */
  measured: measured.optional(),
});

/** An alert as it is raised inside Holdfast; delivery is the work of whoever listens. @public */
export type AlertRaised = z.output<typeof alert>;

/** Everything that should reach a person is published here. @public */
export const alertRaised = defineTopic('alerts.raised', alert, 'Something that a person should know of.');

/** What makes links by which a person acts on an alert. */
export interface AlertLinkMaker {
  /** @returns the link, which is added to the alert when it is sent, and is never recorded; undefined where it has none */
  linkOf(alert: Pick<AlertRaised, 'name' | 'labels'>): string | undefined;
}

/** Where the delivery of alerts collects such links: who has one may act, so that none stands in the log. */
export const alertLinks = defineContributionPoint<AlertLinkMaker>('alerts.links');
