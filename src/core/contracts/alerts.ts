import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';

/** An alert as it is raised inside Holdfast; delivery is the work of whoever listens. */
export interface AlertRaised {
  /** Stable id of the condition, e.g. `reconciler.leg.gave_up`. */
  name: string;
  severity: 'info' | 'warning' | 'critical';
  /** One sentence for the operator, without secrets. */
  text: string;
  /** `state` among them says `firing` or `resolved` of a condition that lasts; without it this is one event. */
  labels: Record<string, string>;
  /** What the rule measured, where a rule raised it. */
  measured?: Measured | undefined;
}

/** What a rule measured, as its receivers see it. */
export interface Measured {
  title: string;
  /** Undefined when there was no data, which is not zero. */
  value?: number | undefined;
  /** e.g. `above 0` */
  threshold: string;
  /** e.g. `1d` */
  window: string;
  /** Hosts and instances of what was measured. */
  places?: readonly string[] | undefined;
  /** What a person does first. */
  firstStep?: string | undefined;
  /** URL of the page that says what to do. */
  runbook?: string | undefined;
}

/** The effect by which a machine notifies a person. */
export const ALERT_RAISE = 'alerts.raise';

/** Everything that should reach a person is published here. */
export const alertRaised: Topic<AlertRaised> = defineTopic(
  'alerts.raised',
  z.object({
    name: z.string(),
    severity: z.enum(['info', 'warning', 'critical']),
    text: z.string(),
    labels: z.record(z.string(), z.string()),
    measured: z
      .object({
        title: z.string(),
        value: z.number().optional(),
        threshold: z.string(),
        window: z.string(),
        places: z.array(z.string()).optional(),
        firstStep: z.string().optional(),
        runbook: z.string().optional(),
      })
      .optional(),
  }),
  'Something that a person should know of.',
);
