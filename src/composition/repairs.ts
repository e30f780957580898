import { repairAddresses } from '../app/hubs/address-repair.ts';
import { repairCapacity } from '../app/hubs/capacity-repair.ts';

/** What gives back things that are held for objects that are over. */
export const REPAIRS = [repairCapacity, repairAddresses];
