import type {
  CreationAbandoned,
  DocumentCreated,
  DocumentDeletionRequested,
  DocumentRetired,
  DocumentRevised,
} from '../catalog/events.ts';

/** Events of a disk image's stream `diskImage-<id>`. */
export type DiskImageEvent =
  | DocumentCreated<'DiskImageRegistered'>
  | DocumentRevised<'DiskImageRevised'>
  | DocumentDeletionRequested<'DiskImageRetirementRequested'>
  | DocumentRetired<'DiskImageRetired'>
  | CreationAbandoned;
