//! The services and macros a workflow may use.

use crate::Name;
use crate::workflow::{Macro, Service};
use std::collections::HashMap;

/// Services and macros by name, in the order they were read.
#[derive(Clone, Debug, Default)]
pub struct Library {
    services: Vec<Service>,
    service_index: HashMap<Name, usize>,
    macros: Vec<Macro>,
    macro_index: HashMap<Name, usize>,
}

impl Library {
    /// Adds a service. Returns it back if the name is taken.
    pub fn add_service(&mut self, service: Service) -> Result<(), Service> {
        if self.service_index.contains_key(&service.id) {
            return Err(service);
        }
        self.service_index.insert(service.id.clone(), self.services.len());
        self.services.push(service);
        Ok(())
    }

    /// Adds a macro. Returns it back if the name is taken.
    pub fn add_macro(&mut self, m: Macro) -> Result<(), Macro> {
        if self.macro_index.contains_key(&m.id) {
            return Err(m);
        }
        self.macro_index.insert(m.id.clone(), self.macros.len());
        self.macros.push(m);
        Ok(())
    }

    /// The service with this name.
    pub fn service(&self, id: &str) -> Option<&Service> {
        self.service_index.get(id).map(|i| &self.services[*i])
    }

    /// All services.
    pub fn services(&self) -> impl Iterator<Item = &Service> {
        self.services.iter()
    }

    /// The macro with this name.
    pub fn macro_named(&self, id: &str) -> Option<&Macro> {
        self.macro_index.get(id).map(|i| &self.macros[*i])
    }

    /// All macros.
    pub fn macros(&self) -> impl Iterator<Item = &Macro> {
        self.macros.iter()
    }
}
