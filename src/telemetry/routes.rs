//! What calls took, by route: the one metric whose label is not a word of this room, since the routes stand in `http`.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use super::instrument::{Definition, Histogram, Instrument, Kind, Series};

/// Methods that routes take; any other is one of `other`.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "other"];
const STATUSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

#[must_use]
pub fn method_label(method: &str) -> &'static str {
    let known = METHODS.into_iter().find(|known| *known == method);
    known.unwrap_or("other")
}

/// What calls of one route took, by method and class of status.
type Route = [[OnceLock<Histogram>; STATUSES.len()]; METHODS.len()];

/// What calls took, by method, route and class of status. A route is its template, so that no path becomes a label.
pub struct Routes {
    definition: &'static Definition,
    /// Locked for writing only when a route is first called.
    routes: RwLock<HashMap<Box<str>, Arc<Route>>>,
}

impl Routes {
    pub fn took(&self, method: &'static str, route: &str, status: u16, time: Duration) {
        let known = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        let series = known.get(route).cloned();
        drop(known);
        let series = series.unwrap_or_else(|| {
            let mut all = self.routes.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(route.into()).or_default())
        });
        let method = METHODS.iter().position(|known| *known == method);
        let class = usize::from(status / 100).saturating_sub(1);
        let series = series.get(method.unwrap_or(METHODS.len() - 1));
        if let Some(series) = series.and_then(|series| series.get(class.min(STATUSES.len() - 1))) {
            let new = || Histogram::new(self.definition);
            series.get_or_init(new).took(time);
        }
    }
}

impl Instrument for Routes {
    const KIND: Kind = Kind::Histogram;

    fn new(definition: &'static Definition) -> Self {
        Self {
            definition,
            routes: RwLock::default(),
        }
    }

    fn read(&self) -> Vec<Series> {
        let all = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        let mut sorted: Vec<_> = all.iter().collect();
        sorted.sort_by_key(|(route, _)| *route);
        let mut read = Vec::new();
        for (route, methods) in sorted {
            for (method, classes) in METHODS.iter().zip(methods.iter()) {
                for (class, series) in STATUSES.iter().zip(classes) {
                    if let Some(series) = series.get() {
                        let labels = [*method, &**route, *class];
                        read.push(Series {
                            labels: labels.map(str::to_owned).into(),
                            value: series.value(),
                        });
                    }
                }
            }
        }
        read
    }
}
