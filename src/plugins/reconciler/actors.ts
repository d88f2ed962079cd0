/** The actors of the reconciler. */
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { adoption } from '../../machines/reconciler/adoption.ts';
import { appSave } from '../../machines/reconciler/app-save.ts';
import { heartbeat } from '../../machines/reconciler/heartbeat.ts';
import { leg } from '../../machines/reconciler/leg.ts';
import { saves } from '../../machines/reconciler/saves.ts';
import { unit } from '../../machines/reconciler/unit.ts';
import {
  describeAdoption,
  describeAppSave,
  describeHeartbeat,
  describeLegRecord,
  describeSaves,
  describeUnit,
} from './words.ts';

/** One actor a leg; its key is the interface's name. */
export const legActor = defineActor({
  type: 'reconciler.leg',
  machine: leg,
  version: 1,
  describe: describeLegRecord,
});

/** Whether the list of legs may be written to a router elsewhere. */
export const adoptionActor = defineActor({
  type: 'reconciler.adoption',
  machine: adoption,
  version: 1,
  describe: describeAdoption,
});
export const ADOPTION_KEY = 'legs';

/** The newest drill of an app save. */
export const appSaveActor = defineActor({
  type: 'reconciler.app_save',
  machine: appSave,
  version: 1,
  describe: describeAppSave,
});
export const APP_SAVE_KEY = 'drill';

/** What saves of others dropped from the config. */
export const savesActor = defineActor({
  type: 'reconciler.saves',
  machine: saves,
  version: 1,
  describe: describeSaves,
});
export const SAVES_KEY = 'config';

/** Whether the reconciler as a whole runs or is paused. */
export const unitActor = defineActor({
  type: 'reconciler.unit',
  machine: unit,
  version: 1,
  describe: describeUnit,
});
export const UNIT_KEY = 'ula-reconcile';

/** The beats to the uptime monitor; its key is the monitor's name. */
export const heartbeatActor = defineActor({
  type: 'reconciler.heartbeat',
  machine: heartbeat,
  version: 1,
  describe: describeHeartbeat,
});
