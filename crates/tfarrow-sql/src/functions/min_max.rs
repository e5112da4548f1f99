//! `min` and `max`, which replace the functions of DataFusion.
//!
//! Those of DataFusion 55.2 compare the floats of a group by `<`: a group with NaN has the least or
//! the greatest of the numbers after its last NaN, and a group of infinities only has the greatest
//! finite number.
//!
//! Workaround for DataFusion 55: apache/datafusion#24432, fixed in 56 by #24433. Delete with
//! DataFusion 56.

use std::sync::Arc;

use arrow_array::{
    ArrowNativeTypeOp, ArrowPrimitiveType,
    types::{Float16Type, Float32Type, Float64Type},
};
use datafusion::{
    arrow::datatypes::DataType,
    error::Result,
    functions_aggregate::min_max::{max_udaf, min_udaf},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator,
        ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs, function::AccumulatorArgs,
        utils::AggregateOrderSensitivity,
    },
    scalar::ScalarValue,
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;
use half::f16;

/// `min(x)` or `max(x)`: the function of DataFusion, but for the floats of groups, which are
/// compared by their total order.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    of_datafusion: Arc<AggregateUDF>,
    is_max: bool,
}

/// Creates the function `min`.
pub(crate) fn min() -> AggregateUDF {
    AggregateUDF::from(Extreme {
        of_datafusion: min_udaf(),
        is_max: false,
    })
}

/// Creates the function `max`.
pub(crate) fn max() -> AggregateUDF {
    AggregateUDF::from(Extreme {
        of_datafusion: max_udaf(),
        is_max: true,
    })
}

impl Extreme {
    /// An accumulator of floats, whose groups begin with the value that every other value replaces.
    fn floats<T>(&self, lowest: T::Native, highest: T::Native) -> Box<dyn GroupsAccumulator>
    where
        T: ArrowPrimitiveType + Send,
    {
        if self.is_max {
            let greatest = PrimitiveGroupsAccumulator::<T, _>::new(
                &T::DATA_TYPE,
                |kept: &mut T::Native, value: T::Native| {
                    if value.is_gt(*kept) {
                        *kept = value;
                    }
                },
            );
            return Box::new(greatest.with_starting_value(lowest));
        }
        let least = PrimitiveGroupsAccumulator::<T, _>::new(
            &T::DATA_TYPE,
            |kept: &mut T::Native, value: T::Native| {
                if value.is_lt(*kept) {
                    *kept = value;
                }
            },
        );
        Box::new(least.with_starting_value(highest))
    }
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.of_datafusion.name()
    }

    fn signature(&self) -> &Signature {
        self.of_datafusion.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.of_datafusion.return_type(types)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.of_datafusion.coerce_types(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.of_datafusion.accumulator(args)
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.of_datafusion.create_sliding_accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.of_datafusion.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match args.return_field.data_type() {
            DataType::Float16 => Ok(self.floats::<Float16Type>(f16::NEG_INFINITY, f16::NAN)),
            DataType::Float32 => Ok(self.floats::<Float32Type>(f32::NEG_INFINITY, f32::NAN)),
            DataType::Float64 => Ok(self.floats::<Float64Type>(f64::NEG_INFINITY, f64::NAN)),
            _ => self.of_datafusion.create_groups_accumulator(args),
        }
    }

    fn is_descending(&self) -> Option<bool> {
        self.of_datafusion.is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.of_datafusion.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.of_datafusion.reverse_udf()
    }

    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.of_datafusion.value_from_stats(args)
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.of_datafusion.inner().set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.of_datafusion.documentation()
    }
}
