import type {
  CreationAbandoned,
  DocumentCreated,
  DocumentDeletionRequested,
  DocumentRetired,
  DocumentRevised,
} from '../catalog/events.ts';

/** Events of an instance type's stream `instanceType-<name>`. */
export type InstanceTypeEvent =
  | DocumentCreated<'InstanceTypeDefined'>
  | DocumentRevised<'InstanceTypeRevised'>
  | DocumentDeletionRequested<'InstanceTypeRetirementRequested'>
  | DocumentRetired<'InstanceTypeRetired'>
  | CreationAbandoned;
