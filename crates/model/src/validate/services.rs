//! Services: whether actions give them what they need.

use super::Validator;
use crate::workflow::{Action, Direction, Execute, Input, InputSource, Service, ServiceParameter};
use serde_json::Value;

impl<'w> Validator<'w> {
    pub(super) fn services(&mut self) {
        let nothing_known = self.library.services().next().is_none();
        if nothing_known && self.ctx.diags.has_errors() {
            return;
        }
        self.visit(&mut |v, action| {
            if let Action::Execute(a) = action
                && !v.flawed.contains(&a.span)
            {
                v.service(a);
            }
        });
    }

    pub(super) fn service(&mut self, a: &'w Execute) {
        let Some(service) = self.library.service(&a.service) else {
            let d = self.ctx.error("unknown-service", a.span, format!("there is no service `{}`", a.service));
            d.did_you_mean(&a.service, self.library.services().map(|s| s.id.as_str()));
            if d.help.is_none() {
                d.help("name the file that describes it with --services, or write `run:` instead");
            }
            return;
        };
        let of = |d| service.parameters.iter().filter(move |p| p.direction == d);
        let inputs = a.inputs.iter().map(|i| (&i.id, i.span, Direction::Input));
        let outputs = a.outputs.iter().map(|o| (&o.id, o.span, Direction::Output));
        for (id, span, direction) in inputs.chain(outputs) {
            if !of(direction).any(|p| p.id == *id) {
                let message = format!("the service `{}` has no {direction} parameter `{id}`", service.id);
                self.ctx
                    .error("unknown-parameter", span, message)
                    .did_you_mean(id, of(direction).map(|p| p.id.as_str()));
            }
        }
        for p in &service.parameters {
            self.cardinality(a, service, p);
        }
    }

    /// Counts what is known before the run: constants count exactly, variables at least as nothing.
    pub(super) fn cardinality(&mut self, a: &'w Execute, service: &Service, p: &ServiceParameter) {
        let mut count = 0;
        let mut unknown = false;
        match p.direction {
            Direction::Output => count = a.outputs.iter().filter(|o| o.id == p.id).count(),
            Direction::Input => {
                for input in a.inputs.iter().filter(|i| i.id == p.id) {
                    match self.constant(input) {
                        Some(Value::Array(items)) if !p.is_directory() => count += flat_len(items),
                        Some(_) => count += 1,
                        None => unknown = true,
                    }
                }
            }
        }
        let given = a.inputs.iter().any(|i| i.id == p.id);
        if !given
            && p.direction == Direction::Input
            && p.cardinality.min == 1
            && p.cardinality.max == 1
            && p.default.is_some()
        {
            return;
        }
        let too_few = !unknown && count < p.cardinality.min as usize;
        let too_many = count > p.cardinality.max as usize;
        if too_few || too_many {
            let span = a.inputs.iter().find(|i| i.id == p.id).map_or(a.span, |i| i.span);
            let message = format!(
                "the {} parameter `{}` of the service `{}` is given {count} times, but its cardinality is {}",
                p.direction, p.id, service.id, p.cardinality
            );
            self.ctx.error("cardinality", span, message);
        }
    }

    pub(super) fn constant(&self, input: &'w Input) -> Option<&'w Value> {
        match &input.source {
            InputSource::Value(value) => Some(value),
            InputSource::Var(id) => self.constants.get(id.as_str()).copied(),
        }
    }
}

fn flat_len(items: &[Value]) -> usize {
    items.iter().map(|v| if let Value::Array(inner) = v { flat_len(inner) } else { 1 }).sum()
}
