//! The molecules of one solution, with the buckets and indexes that matching looks into.

use crate::network::Network;
use crate::value::Value;
use std::collections::{HashMap, VecDeque};

/// A molecule. The same slot is used again after it is gone, with another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id {
    slot: u32,
    generation: u32,
}

struct Slot {
    value: Option<Value>,
    generation: u32,
    /// Younger molecules have higher numbers.
    born: u64,
}

#[derive(Default)]
pub(crate) struct Memory {
    slots: Vec<Slot>,
    free: Vec<u32>,
    born: u64,
    /// By shape.
    buckets: Vec<Bucket>,
    /// By index of the network. An index is made once there are enough molecules that it pays.
    indexes: Vec<Option<HashMap<Value, Bucket>>>,
}

/// Up to so many molecules are looked through one by one. Tests have few molecules, and want indexes.
pub(crate) const SMALL: usize = if cfg!(test) { 1 } else { 8 };

/// Molecules in the order they came. Those that are gone are forgotten later, many at once.
#[derive(Default)]
pub(crate) enum Bucket {
    #[default]
    Empty,
    One(Id),
    Many(Box<Many>),
}

pub(crate) struct Many {
    ids: VecDeque<Id>,
    gone: usize,
}

impl Bucket {
    fn push(&mut self, id: Id) {
        match self {
            Bucket::Empty => *self = Bucket::One(id),
            Bucket::One(first) => {
                *self = Bucket::Many(Box::new(Many { ids: VecDeque::from([*first, id]), gone: 0 }));
            }
            Bucket::Many(many) => many.ids.push_back(id),
        }
    }

    /// How many molecules there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Bucket::Empty => 0,
            Bucket::One(_) => 1,
            Bucket::Many(many) => many.ids.len() - many.gone,
        }
    }

    /// How many entries there are, also of molecules that are gone.
    pub(crate) fn entries(&self) -> usize {
        match self {
            Bucket::Many(many) => many.ids.len(),
            other => other.len(),
        }
    }

    pub(crate) fn entry(&self, at: usize) -> Option<Id> {
        match self {
            Bucket::Empty => None,
            Bucket::One(id) => Some(*id).filter(|_| at == 0),
            Bucket::Many(many) => many.ids.get(at).copied(),
        }
    }

    /// One molecule, which is no longer alive, has gone.
    fn forget(&mut self, slots: &[Slot]) {
        match self {
            Bucket::Empty => {}
            Bucket::One(_) => *self = Bucket::Empty,
            Bucket::Many(many) => {
                many.gone += 1;
                while many.ids.front().is_some_and(|id| !alive(slots, *id)) {
                    many.ids.pop_front();
                    many.gone -= 1;
                }
                if many.gone * 2 > many.ids.len() {
                    many.ids.retain(|id| alive(slots, *id));
                    many.gone = 0;
                }
                if many.ids.is_empty() {
                    *self = Bucket::Empty;
                }
            }
        }
    }
}

fn alive(slots: &[Slot], id: Id) -> bool {
    slots.get(id.slot as usize).is_some_and(|s| s.generation == id.generation && s.value.is_some())
}

impl Memory {
    /// Makes room for the shapes and indexes that a network has; new ones are filled.
    pub(crate) fn grow(&mut self, network: &Network) {
        let shapes = self.buckets.len()..network.shapes();
        self.buckets.resize_with(network.shapes(), Bucket::default);
        self.indexes.resize_with(network.indexes(), || None);
        if shapes.is_empty() {
            return;
        }
        for (at, slot) in self.slots.iter().enumerate() {
            let Some(value) = &slot.value else { continue };
            let id = Id { slot: at as u32, generation: slot.generation };
            for shape in network.shapes_of(value).filter(|s| shapes.contains(s)) {
                self.buckets[shape].push(id);
            }
        }
    }

    /// Makes the indexes that a rule needs, where there are many molecules.
    pub(crate) fn make_indexes(&mut self, network: &Network, rule: usize) {
        for pattern in &network.rules[rule].patterns {
            let bucket = &self.buckets[pattern.shape];
            if bucket.len() <= SMALL {
                continue;
            }
            for (index, _) in &pattern.keys {
                if self.indexes[*index].is_some() {
                    continue;
                }
                let mut map: HashMap<Value, Bucket> = HashMap::new();
                for id in (0..bucket.entries()).filter_map(|at| bucket.entry(at)) {
                    let Some(value) = self.get(id) else { continue };
                    network.keys(*index, value, &mut |key| map.entry(key.clone()).or_default().push(id));
                }
                self.indexes[*index] = Some(map);
            }
        }
    }

    pub(crate) fn insert(&mut self, network: &Network, value: Value) -> Id {
        self.born += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { value: None, generation: 0, born: 0 });
            (self.slots.len() - 1) as u32
        });
        let id = Id { slot, generation: self.slots[slot as usize].generation };
        for shape in network.shapes_of(&value) {
            self.buckets[shape].push(id);
            for index in network.indexes_of(shape) {
                let Some(map) = &mut self.indexes[index] else { continue };
                network.keys(index, &value, &mut |key| map.entry(key.clone()).or_default().push(id));
            }
        }
        let place = &mut self.slots[slot as usize];
        place.value = Some(value);
        place.born = self.born;
        id
    }

    pub(crate) fn remove(&mut self, network: &Network, id: Id) -> Option<Value> {
        let slot = self.slots.get_mut(id.slot as usize).filter(|s| s.generation == id.generation)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        for shape in network.shapes_of(&value) {
            self.buckets[shape].forget(&self.slots);
            for index in network.indexes_of(shape) {
                let Some(map) = &mut self.indexes[index] else { continue };
                network.keys(index, &value, &mut |key| {
                    if let Some(bucket) = map.get_mut(key) {
                        bucket.forget(&self.slots);
                        if bucket.len() == 0 {
                            map.remove(key);
                        }
                    }
                });
            }
        }
        Some(value)
    }

    pub(crate) fn get(&self, id: Id) -> Option<&Value> {
        self.slots.get(id.slot as usize).filter(|s| s.generation == id.generation)?.value.as_ref()
    }

    /// How young it is.
    pub(crate) fn born(&self, id: Id) -> u64 {
        self.slots.get(id.slot as usize).map_or(0, |s| s.born)
    }

    /// The molecules of a shape.
    pub(crate) fn of_shape(&self, shape: usize) -> &Bucket {
        &self.buckets[shape]
    }

    /// The molecules with a key, if there is an index to tell.
    pub(crate) fn with_key(&self, index: usize, key: &Value) -> Option<&Bucket> {
        self.indexes[index].as_ref().map(|map| map.get(key).unwrap_or(&Bucket::Empty))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Value> {
        self.slots.iter().filter_map(|s| s.value.as_ref())
    }

    pub(crate) fn into_values(self) -> impl Iterator<Item = Value> {
        self.slots.into_iter().filter_map(|s| s.value)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
